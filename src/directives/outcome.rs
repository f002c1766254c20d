//! What an attempt comes to: a table, and nothing else.

use std::time::Duration;

use super::config::Retry;
use crate::agent::ports::clock::ms;
use crate::agent::ports::directive_queue::{Attempt, Claimed, Proof, Settlement};
use crate::agent::ports::directives::CommandRule;
use crate::chat::directive::{DirectiveError, DirectiveErrorCode, RunsAs};

/// What the attempt of `claimed` comes to. `jitter` is between 0 and 1.
pub(super) fn of_attempt(
    attempt: Attempt,
    claimed: &Claimed,
    rule: &CommandRule,
    retry: Retry,
    jitter: f64,
) -> Settlement {
    let (proof, error, retry_after) = match attempt {
        Attempt::Done(done) => return Settlement::Succeeded(done),
        Attempt::Failed { proof, error, retry_after } => (proof, error, retry_after),
    };
    let in_doubt = proof == Proof::Doubt;
    let may_again = match (proof, rule.idempotent) {
        (Proof::NotNow, _) | (Proof::Broke | Proof::Doubt, true) => true,
        (Proof::Broke | Proof::Doubt, false) | (Proof::Refused, _) => false,
    };
    let is_left = claimed.directive.attempt < claimed.directive.max_attempts;
    match (may_again && is_left, in_doubt || claimed.in_doubt) {
        (true, _) => {
            let pause = pause(claimed.directive.attempt, retry, jitter);
            let asked = retry_after.unwrap_or_default().min(retry.most);
            Settlement::Again { error, in_ms: ms(pause.max(asked)), in_doubt }
        }
        (false, true) => Settlement::Unknown(unknown(&error.message)),
        (false, false) => Settlement::Failed(error),
    }
}

/// What becomes of one whose process has died.
pub(super) fn of_abandoned(claimed: &Claimed, rule: Option<&CommandRule>) -> Settlement {
    let words = "the server that sent it stopped before the answer came";
    let is_left = claimed.directive.attempt < claimed.directive.max_attempts;
    match (claimed.was_sent, claimed.directive.runs_as, rule) {
        (false, RunsAs::Caller, _) => Settlement::CallerGone,
        // It counts as none: nothing went out.
        (false, RunsAs::Service, _) => Settlement::Again {
            error: DirectiveError {
                code: DirectiveErrorCode::BackendUnavailable,
                message: "the server stopped before it was sent".to_owned(),
            },
            in_ms: 0,
            in_doubt: false,
        },
        (true, RunsAs::Service, Some(rule)) if rule.idempotent && is_left => Settlement::Again {
            error: DirectiveError { code: DirectiveErrorCode::BackendTimeout, message: words.to_owned() },
            in_ms: 0,
            in_doubt: true,
        },
        (true, _, _) => Settlement::Unknown(unknown(words)),
    }
}

/// The error of what nobody knows.
pub(super) fn unknown(why: &str) -> DirectiveError {
    let message = format!(
        "it was sent, and it is not known whether it was done; look whether it was before anything is repeated ({why})"
    );
    DirectiveError { code: DirectiveErrorCode::OutcomeUnknown, message }
}

/// The pause behind this attempt: doubled with each, and between half of that and all of it.
fn pause(attempt: u32, retry: Retry, jitter: f64) -> Duration {
    let doubled = retry.base.saturating_mul(1 << attempt.saturating_sub(1).min(20)).min(retry.most);
    doubled.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::agent::ports::directive_queue::{AttemptDone, Fence};
    use crate::chat::approval::Consent;
    use crate::chat::caller::Owner;
    use crate::chat::directive::{Directive, DirectiveStatus};
    use crate::chat::ids::DirectiveId;
    use crate::chat::signal::FactName;

    const RETRY: Retry = Retry { base: Duration::from_secs(1), most: Duration::from_secs(300) };

    fn claimed(attempt: u32, max_attempts: u32, in_doubt: bool) -> Claimed {
        let directive = Directive {
            id: DirectiveId::fresh(),
            owner: Owner { tenant: "acme".to_owned(), user: "ann".to_owned() },
            name: FactName::parse("forum.thread.create").unwrap(),
            status: DirectiveStatus::Running,
            reason: None,
            runs_as: RunsAs::Service,
            payload: serde_json::Map::new(),
            subject: None,
            roles: Vec::new(),
            correlation: String::new(),
            causation: None,
            conversation: None,
            idempotency_key: None,
            attempt,
            max_attempts,
            created_at_ms: 0,
            updated_at_ms: 0,
            due_at_ms: 0,
            started_at_ms: None,
            completed_at_ms: None,
            result: None,
            text: None,
            error: None,
            approval: None,
        };
        let fence = Fence { id: directive.id, token: 1 };
        Claimed { directive, fence, was_sent: true, in_doubt }
    }

    fn rule(idempotent: bool) -> CommandRule {
        CommandRule {
            name: FactName::parse("forum.thread.create").unwrap(),
            tool: "create".to_owned(),
            roles: Vec::new(),
            runs_as: RunsAs::Service,
            consent: Consent::Auto,
            idempotent,
            max_attempts: 3,
            delay: Duration::ZERO,
        }
    }

    fn word(settlement: &Settlement) -> &'static str {
        match settlement {
            Settlement::Succeeded(_) => "succeeded",
            Settlement::Failed(_) => "failed",
            Settlement::Unknown(_) => "unknown",
            Settlement::Again { in_doubt: true, .. } => "again, in doubt",
            Settlement::Again { in_doubt: false, .. } => "again",
            Settlement::CallerGone => "caller gone",
        }
    }

    #[test]
    fn an_attempt_comes_to_what_it_proves() {
        let failed = |proof| Attempt::failed(proof, DirectiveErrorCode::BackendUnavailable, "no");
        let rows = [
            (Proof::NotNow, true, 1, false, "again", "it may work later"),
            (Proof::NotNow, false, 1, false, "again", "also where the backend knows no keys"),
            (Proof::NotNow, false, 3, false, "failed", "none is left"),
            (Proof::NotNow, true, 3, true, "unknown", "an attempt before may have been done"),
            (Proof::Broke, true, 1, false, "again", "a backend that knows it by its key"),
            (Proof::Broke, false, 1, false, "failed", "one that does not"),
            (Proof::Refused, true, 1, false, "failed", "asking again would not help"),
            (Proof::Refused, true, 2, true, "unknown", "what was in doubt stays so"),
            (Proof::Doubt, true, 1, false, "again, in doubt", "by its key"),
            (Proof::Doubt, true, 3, false, "unknown", "none is left"),
            (Proof::Doubt, false, 1, false, "unknown", "and never sent again"),
        ];
        for (proof, idempotent, attempt, in_doubt, expected, reason) in rows {
            let claimed = claimed(attempt, 3, in_doubt);
            let settlement = of_attempt(failed(proof), &claimed, &rule(idempotent), RETRY, 0.5);
            assert_eq!(word(&settlement), expected, "{reason}");
        }
        let done = AttemptDone { result: Value::Null, text: None, signals: Vec::new() };
        let settlement = of_attempt(Attempt::Done(done), &claimed(1, 1, true), &rule(false), RETRY, 0.5);
        assert_eq!(word(&settlement), "succeeded");
    }

    #[test]
    fn what_a_dead_process_has_left_is_sent_again_only_where_that_does_no_harm() {
        let rows = [
            (false, false, 1, "again", "it was not sent, though no attempt is left"),
            (true, true, 1, "again, in doubt", "the backend knows its key"),
            (true, true, 3, "unknown", "no attempt is left"),
            (true, false, 1, "unknown", "the backend knows no keys"),
        ];
        for (was_sent, idempotent, attempt, expected, reason) in rows {
            let claimed = Claimed { was_sent, ..claimed(attempt, 3, false) };
            assert_eq!(word(&of_abandoned(&claimed, Some(&rule(idempotent)))), expected, "{reason}");
        }
        let mut of_caller = claimed(1, 1, false);
        of_caller.directive.runs_as = RunsAs::Caller;
        of_caller.was_sent = false;
        assert_eq!(word(&of_abandoned(&of_caller, None)), "caller gone");
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_the_backend_is_heard() {
        let again = |attempt, retry_after: Option<u64>| {
            let failed = Attempt::Failed {
                proof: Proof::NotNow,
                error: DirectiveError { code: DirectiveErrorCode::BackendUnavailable, message: String::new() },
                retry_after: retry_after.map(Duration::from_secs),
            };
            match of_attempt(failed, &claimed(attempt, 100, false), &rule(true), RETRY, 1.0) {
                Settlement::Again { in_ms, .. } => in_ms,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(again(1, None), 1000);
        assert_eq!(again(3, None), 4000);
        assert_eq!(again(50, None), 300_000);
        assert_eq!(again(1, Some(7)), 7000, "the backend wants more");
        assert_eq!(again(1, Some(9999)), 300_000, "but not for ever");
    }
}
