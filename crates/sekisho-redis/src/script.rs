//! The script that decides.

use std::sync::LazyLock;

/// The script in full.
pub(crate) const SOURCE: &str = concat!(
    include_str!("../scripts/entry.lua"),
    include_str!("../scripts/prelude.lua"),
    include_str!("../scripts/windows.lua"),
    include_str!("../scripts/log.lua"),
    include_str!("../scripts/levels.lua"),
    include_str!("../scripts/decide.lua"),
);

/// The digest by which a server knows it: SHA-1, in hexadecimal digits. Two versions of ours on one server each have their
/// own.
pub(crate) static DIGEST: LazyLock<String> =
    LazyLock::new(|| sha1_smol::Sha1::from(SOURCE).digest().to_string());
