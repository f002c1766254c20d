//! The process itself, by the names that every Prometheus client uses. The kernel's numbers are read for each scrape,
//! and where there is no `/proc` there are none.

use std::fmt::Write;
use std::fs;

/// What the kernel counts processor time in: 1/100 s towards programs, whatever it uses itself.
const TICKS_PER_S: f64 = 100.0;

/// Bytes of a page, which are 4 KiB on all machines that we are built for by default.
const PAGE_BYTES: u64 = 4096;

/// Appends processor time, memory, descriptors and start in Prometheus' text format.
pub(super) fn append(text: &mut String) {
    let own = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The program's name comes before, in brackets, and may have anything in it.
    let fields: Vec<&str> = own.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
    if let (Some(user), Some(system)) = (ticks(11), ticks(12)) {
        put(text, "process_cpu_seconds_total", "counter", "Processor time", (user + system) / TICKS_PER_S);
    }
    if let (Some(start), Some(boot)) = (ticks(19), boot_time()) {
        put(text, "process_start_time_seconds", "gauge", "When the process started", boot + start / TICKS_PER_S);
    }
    if let Some(threads) = ticks(17) {
        put(text, "process_threads", "gauge", "Threads", threads);
    }
    let memory = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: Vec<u64> = memory.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    if let [whole, resident, ..] = pages[..] {
        put(text, "process_resident_memory_bytes", "gauge", "Memory in use", (resident * PAGE_BYTES) as f64);
        put(text, "process_virtual_memory_bytes", "gauge", "Address space", (whole * PAGE_BYTES) as f64);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        put(text, "process_open_fds", "gauge", "Open descriptors", open.count() as f64);
    }
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let max = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    if let Some(max) = max.and_then(|max| max.parse().ok()) {
        put(text, "process_max_fds", "gauge", "Descriptors allowed", max);
    }
}

fn boot_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

fn put(text: &mut String, name: &str, kind: &str, help: &str, value: f64) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name} {value}\n");
}
