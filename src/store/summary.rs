//! Where a summary ends: which runs of a branch are old enough for one; and a summary as it is stored.

use super::record_error::RecordError;
use crate::agent::ports::summaries::Keep;

/// A summary as JSON text, which holds any character in every database.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn encode_summary(text: &str) -> Result<String, RecordError> {
    serde_json::to_string(text).map_err(RecordError::json("summary"))
}

/// The summary in `body`.
///
/// # Errors
/// When it is not what [`encode_summary`] wrote.
pub(super) fn decode_summary(body: &str) -> Result<String, RecordError> {
    serde_json::from_str(body).map_err(RecordError::json("summary"))
}

/// A run of a branch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sized {
    pub(super) run_seq: i64,
    /// Of its messages on the branch, as stored.
    pub(super) bytes: usize,
    /// Of user and model among them.
    pub(super) messages: usize,
    /// Whether all its messages are on the branch: a summary of a run stands for all of it.
    pub(super) is_whole: bool,
}

/// The last run that the next summary covers, of the runs that none covers yet, oldest first; `None` where all are to be
/// read or none can be covered.
///
/// The newest run stays in any case, and those that `keep` says. A summary covers no more than its bytes at once, so that
/// it can be made; the rest comes next.
pub(super) fn cut(runs: &[Sized], keep: Keep) -> Option<i64> {
    let sum = |runs: &[Sized]| runs.iter().fold(0_usize, |sum, run| sum.saturating_add(run.bytes));
    let history_bytes = if keep.bytes == 0 { usize::MAX } else { keep.bytes };
    let newest = runs.len().checked_sub(1)?;
    let messages = |runs: &[Sized]| runs.iter().map(|run| run.messages).sum::<usize>();
    let by_messages = keep.messages.and_then(|most| (1..=newest).rfind(|first| messages(&runs[*first..]) >= most));
    let stay = match by_messages {
        Some(first) => first,
        None if sum(runs) <= history_bytes => return None,
        None => (0..newest).find(|first| sum(&runs[*first..]) <= history_bytes / 2).unwrap_or(newest),
    };
    let old = &runs[..stay];
    let ends = || old.iter().enumerate().filter(|(_, run)| run.is_whole);
    let within = ends().rfind(|(at, _)| sum(&old[..=*at]) <= history_bytes);
    within.or_else(|| ends().next()).map(|(_, run)| run.run_seq)
}

#[cfg(test)]
mod tests {
    use super::{Keep, Sized, cut};

    /// Runs numbered from 0; a negative size is a run that is only there in part.
    fn runs(sizes: &[i64]) -> Vec<Sized> {
        let sized = sizes.iter().enumerate().map(|(at, size)| Sized {
            run_seq: i64::try_from(at).unwrap(),
            bytes: usize::try_from(size.abs()).unwrap(),
            messages: 2,
            is_whole: *size >= 0,
        });
        sized.collect()
    }

    #[test]
    fn the_older_runs_are_covered_and_the_newer_half_of_the_bytes_is_not() {
        let rows: [(&[i64], Option<i64>, &str); 11] = [
            (&[], None, "nothing"),
            (&[50, 50], None, "everything fits, to the byte"),
            (&[101], None, "the only run stays, however large it is"),
            (&[30, 30, 30, 30], Some(2), "one run of 30 fits half of 100"),
            (&[30, 30, 25, 25], Some(1), "two runs of 25 fill half of it"),
            (&[60, 60], Some(0), "the newest run stays though it is larger than half"),
            (&[10, 200], Some(0), "and though it is larger than all"),
            (&[60, 60, 60, 10], Some(0), "one summary covers no more than the limit; the rest comes next"),
            (&[300, 10, 10], Some(0), "except for a run that is larger by itself"),
            (&[40, -40, 40, 10], Some(0), "a run that is there in part ends no summary"),
            (&[-90, 90], None, "and where there is no other, there is none"),
        ];
        for (sizes, expected, reason) in rows {
            assert_eq!(cut(&runs(sizes), Keep { bytes: 100, messages: None }), expected, "{reason}");
        }
    }

    #[test]
    fn so_many_messages_stay_and_whole_runs_are_covered() {
        let rows = [
            (&[1; 8][..], 10, 0, Some(2), "five runs of two messages stay"),
            (&[1; 8], 9, 0, Some(2), "and where a run is cut by the number, it stays"),
            (&[1; 5], 10, 0, None, "all of them stay"),
            (&[1; 2], 0, 0, Some(0), "the newest run stays in any case"),
            (&[1; 1], 0, 0, None, "also alone"),
            (&[60, 60, 60, 1], 2, 100, Some(0), "no more than the bytes at once"),
            (&[60, 60, 60, 1], 20, 100, Some(0), "where all would stay and do not fit, the bytes decide"),
        ];
        for (sizes, messages, bytes, expected, reason) in rows {
            assert_eq!(cut(&runs(sizes), Keep { bytes, messages: Some(messages) }), expected, "{reason}");
        }
    }
}
