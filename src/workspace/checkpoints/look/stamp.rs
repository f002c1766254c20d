//! What tells that a file is as it was at the last look, without reading it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

/// The kernel stamps files with a clock that ticks: two changes within a tick get the same time. 10 ms is the longest
/// tick; twice that is on the safe side.
const TICK: Duration = Duration::from_millis(20);

/// File systems that keep no fractions of a second keep whole ones, or every other one.
const COARSE_TICK: Duration = Duration::from_secs(2);

/// The size, the times, the number and the mode of a file. Equal stamps mean equal content, unless the file was changed
/// within the tick in which it was stamped ([`Stamp::is_settled`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(super) size: u64,
    pub(super) modified: (i64, u32),
    /// Nobody can set it: it tells of edits whose modification time was set back.
    pub(super) changed: (i64, u32),
    pub(super) inode: u64,
    pub(super) mode: u32,
}

impl Stamp {
    /// The stamp of what the system tells about a file.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        trivial_numeric_casts,
        reason = "the types of the fields differ between architectures; their values fit"
    )]
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
        }
    }

    /// Whether a change after `looked` must give another stamp than this one. Times of the future are never settled:
    /// the clock was set back, and may come by again.
    pub(super) fn is_settled(&self, looked: SystemTime) -> bool {
        let is_coarse = self.changed.1 == 0 && self.modified.1 == 0;
        let tick = if is_coarse { COARSE_TICK } else { TICK };
        let Ok(seconds) = u64::try_from(self.changed.0) else {
            return false;
        };
        let changed = UNIX_EPOCH.checked_add(Duration::new(seconds, self.changed.1));
        changed.and_then(|changed| changed.checked_add(tick)).is_some_and(|settled| settled < looked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_at(seconds: i64, nanoseconds: u32) -> Stamp {
        Stamp { size: 1, modified: (1, 1), changed: (seconds, nanoseconds), inode: 1, mode: 0o100_644 }
    }

    #[test]
    fn a_stamp_is_settled_when_its_tick_is_over() {
        let looked = UNIX_EPOCH + Duration::new(1000, 500_000_000);
        assert!(changed_at(1000, 400_000_000).is_settled(looked));
        assert!(!changed_at(1000, 490_000_000).is_settled(looked), "within the tick");
        assert!(!changed_at(1000, 500_000_000).is_settled(looked), "at the same time");
        assert!(!changed_at(2000, 1).is_settled(looked), "in the future");
    }

    #[test]
    fn a_coarse_stamp_is_settled_after_two_seconds() {
        let coarse = Stamp { modified: (1000, 0), ..changed_at(1000, 0) };
        assert!(!coarse.is_settled(UNIX_EPOCH + Duration::new(1001, 0)));
        assert!(coarse.is_settled(UNIX_EPOCH + Duration::new(1003, 0)));
    }
}
