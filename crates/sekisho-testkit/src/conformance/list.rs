//! The case files, built in.

macro_rules! files {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../cases/", $id, ".toml")))),*]
    };
}

/// Each case's name and text.
pub(super) const FILES: &[(&str, &str)] = files! {
    "B02" "B04" "B06" "B07" "B17" "B20" "B21" "B22" "B23" "B24" "B25" "B26" "B28" "B30" "B31"
    "B34" "B35" "B36" "B39" "B40" "B41" "B43" "B58" "B60" "B66" "B70" "B75" "B76" "B83"
};
