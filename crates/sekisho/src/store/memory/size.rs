//! How much memory there is, so that the store's default bound fits the machine or the container.

use std::fs;

/// The bound where nothing can be read about the machine: 256 MiB.
const UNKNOWN: usize = 256 << 20;

/// Returns a quarter of the memory that this process may use.
pub(super) fn default_max_bytes() -> usize {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo_total(&text));
    let cgroup = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .into_iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        // The second version writes `max` for no limit, the first a number larger than any machine.
        .filter_map(|text| text.trim().parse::<usize>().ok())
        .min();
    machine.into_iter().chain(cgroup).min().map_or(UNKNOWN, |bytes| bytes / 4)
}

fn meminfo_total(text: &str) -> Option<usize> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_kibibytes() {
        assert_eq!(meminfo_total("MemTotal:       24576 kB\nMemFree: 1 kB\n"), Some(24_576 << 10));
        assert_eq!(meminfo_total("nothing"), None);
        assert!(default_max_bytes() > 1 << 20);
    }
}
