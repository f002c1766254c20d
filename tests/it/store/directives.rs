//! What every store promises about directives, signals and deliveries.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use switchboard::agent::ports::directive_queue::{AttemptDone, Claimed, Claiming, Due, Fence, Settlement};
use switchboard::agent::ports::directives::{
    Access, Change, ChangeError, CommandRule, Decided, DirectiveFilter, LiveLimits, NewDirective, Prepared,
    RequestError, RequestKey, Requested, Wanted,
};
use switchboard::agent::ports::signals::SignalFilter;
use switchboard::chat::approval::Consent;
use switchboard::chat::caller::{Bearer, Caller, Owner};
use switchboard::chat::directive::{Directive, DirectiveError, DirectiveErrorCode, DirectiveStatus, RunsAs};
use switchboard::chat::ids::DirectiveId;
use switchboard::chat::signal::{FactName, SignalFact, SignalSource, Subject};
use switchboard::store::Store;

use super::contract::{Database, ManualClock};

pub fn caller(path: &str, roles: &[&str]) -> Caller {
    let (tenant, user) = path.split_once('/').unwrap();
    Caller {
        owner: Owner { tenant: tenant.to_owned(), user: user.to_owned() },
        known_as: None,
        expires_at_ms: None,
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        bearer: Bearer::new("t"),
        cookie: None,
    }
}

pub fn rule(consent: Consent) -> CommandRule {
    CommandRule {
        name: FactName::parse("ticket.close").unwrap(),
        tool: "close".to_owned(),
        roles: Vec::new(),
        runs_as: RunsAs::Service,
        consent,
        idempotent: true,
        max_attempts: 2,
        delay: Duration::ZERO,
    }
}

/// What may be asked for in one way or another.
#[derive(Default, Clone, Copy)]
pub struct Ask<'a> {
    pub key: Option<&'a str>,
    pub intent: Option<&'a str>,
    pub note: &'a str,
}

pub async fn ask(
    store: &dyn Store,
    caller: &Caller,
    rule: &CommandRule,
    Ask { key, intent, note }: Ask<'_>,
) -> Result<Requested, RequestError> {
    let Value::Object(payload) = json!({"note": note, "nul\u{0}": [1.5, null]}) else { unreachable!() };
    let prepared = Prepared {
        payload,
        subject: Some(Subject { kind: "ticket".to_owned(), id: "7\u{0}".to_owned() }),
        intent: intent.map(str::to_owned),
        digest: "d".to_owned(),
    };
    let wanted = Wanted {
        name: "ticket.close",
        prepared,
        correlation: "run".to_owned(),
        call: None,
        is_approved: false,
        key: key.map(|key| RequestKey::Client { key: key.to_owned(), asked: note.to_owned() }),
        scheduled_at_ms: None,
    };
    let limits = LiveLimits { per_user: 0, per_tenant: 0 };
    store.keep_directive(NewDirective { caller, wanted, rule, approval_ms: 60_000, limits }).await
}

fn names() -> [String; 1] {
    ["ticket.close".to_owned()]
}

pub async fn claim(store: &dyn Store, process: &str, what: Due, most: u32) -> Vec<Claimed> {
    store.claim_directives(Claiming { process, lease_ms: 60_000, most, what, names: &names() }).await.unwrap()
}

pub async fn settle(store: &dyn Store, fence: Fence, settlement: &Settlement) -> Option<Directive> {
    store.settle_attempts(&[(fence, settlement)]).await.unwrap().pop()
}

async fn read(store: &dyn Store, caller: &Caller, id: DirectiveId) -> Directive {
    store.directive(caller, id, true).await.unwrap().unwrap()
}

pub async fn told(store: &dyn Store, caller: &Caller) -> Vec<String> {
    let filter = SignalFilter { of_tenant: true, ascending: true, limit: 500, ..SignalFilter::default() };
    let page = store.signals(caller, &filter).await.unwrap();
    let seqs: Vec<i64> = page.items.iter().map(|signal| signal.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    page.items.into_iter().map(|signal| signal.fact.name).collect()
}

pub fn done() -> Settlement {
    let signal = SignalFact {
        name: "ticket.closed".to_owned(),
        payload: serde_json::Map::new(),
        metadata: serde_json::Map::new(),
        occurred_at_ms: None,
        correlation: None,
        causation: None,
        actor: None,
        subject: None,
        source: SignalSource::Directives,
        dedupe_key: None,
    };
    Settlement::Succeeded(AttemptDone {
        result: json!({"x": 1.0e-7}),
        text: Some("Closed.".to_owned()),
        signals: vec![signal],
    })
}

const ALL: Access = Access { reads: true, operates: true };

pub async fn a_directive_reads_back_as_it_was_kept(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let ann = caller("acme/ann", &["member", "b\u{0}"]);
    let kept = ask(&*store, &ann, &rule(Consent::User), Ask { note: "ü", ..Ask::default() }).await.unwrap();
    assert!(kept.created && kept.directive.status == DirectiveStatus::PendingApproval);
    assert_eq!(read(&*store, &ann, kept.directive.id).await, kept.directive);
    let decision = Decided { approve: true, comment: Some("yes\u{0}".to_owned()), digest: Some("d".to_owned()) };
    let decided = store.decide_directive(&ann, kept.directive.id, ALL, &decision).await.unwrap();
    assert_eq!(read(&*store, &ann, kept.directive.id).await, decided);
    let [claimed] = &claim(&*store, "p", Due::Now, 9).await[..] else { panic!() };
    assert_eq!(store.begin_attempts(&[claimed.fence], 60_000).await.unwrap(), [claimed.fence]);
    let ended = settle(&*store, claimed.fence, &done()).await.unwrap();
    let again = database.open(ManualClock::new()).await;
    assert_eq!(read(&*again, &ann, kept.directive.id).await, ended);
    assert_eq!((ended.status, ended.text.as_deref()), (DirectiveStatus::Succeeded, Some("Closed.")));
    let expected =
        ["directive.requested", "directive.approved", "directive.started", "ticket.closed", "directive.succeeded"];
    assert_eq!(told(&*store, &ann).await, expected);
    let other = caller("umbrella/ann", &[]);
    assert!(store.directive(&other, kept.directive.id, true).await.unwrap().is_none());
    let filter = DirectiveFilter { of_tenant: true, limit: 10, ..DirectiveFilter::default() };
    assert!(store.directives(&other, &filter).await.unwrap().items.is_empty());
    assert!(told(&*store, &other).await.is_empty());
}

pub async fn of_many_requests_at_once_with_one_key_or_intent_one_is_kept(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let (ann, rule) = (caller("acme/ann", &[]), rule(Consent::Auto));
    let keyed = join_all((0..20).map(|_| ask(&*store, &ann, &rule, Ask { key: Some("k"), ..Ask::default() }))).await;
    let keyed: Vec<Requested> = keyed.into_iter().map(Result::unwrap).collect();
    assert_eq!(keyed.iter().filter(|asked| asked.created).count(), 1);
    assert!(keyed.iter().all(|asked| asked.directive.id == keyed[0].directive.id));
    let other = ask(&*store, &ann, &rule, Ask { key: Some("k"), note: "other", ..Ask::default() }).await;
    assert!(matches!(other, Err(RequestError::KeyMismatch)), "{other:?}");
    let callers: Vec<Caller> = (0..10).map(|n| caller(&format!("acme/u{n}"), &[])).collect();
    let meant = callers.iter().map(|caller| ask(&*store, caller, &rule, Ask { intent: Some("i"), ..Ask::default() }));
    let meant: Vec<Requested> = join_all(meant).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(meant.iter().filter(|asked| asked.created).count(), 1);
    let apart = ask(&*store, &caller("umbrella/ann", &[]), &rule, Ask { intent: Some("i"), ..Ask::default() }).await;
    assert!(apart.unwrap().created, "another tenant's intent is another one");
    let seen = Ask { key: Some("seen"), intent: Some("i"), note: "" };
    let asked = ask(&*store, &callers[2], &rule, seen).await.unwrap();
    assert_eq!((asked.created, asked.directive.id), (false, meant[0].directive.id));
    // What is over is no longer the same intent, and cannot run again beside a live one.
    for claimed in claim(&*store, "p", Due::Now, 9).await {
        store.begin_attempts(&[claimed.fence], 60_000).await.unwrap();
        let error = DirectiveError { code: DirectiveErrorCode::BackendRefused, message: "no".to_owned() };
        settle(&*store, claimed.fence, &Settlement::Failed(error)).await.unwrap();
    }
    let next = ask(&*store, &callers[1], &rule, Ask { intent: Some("i"), ..Ask::default() }).await.unwrap();
    assert!(next.created);
    // A key stands for the one that it has met.
    let again = ask(&*store, &callers[2], &rule, seen).await.unwrap();
    assert_eq!((again.created, again.directive.id), (false, meant[0].directive.id));
    let other = ask(&*store, &callers[2], &rule, Ask { note: "other", ..seen }).await;
    assert!(matches!(other, Err(RequestError::KeyMismatch)), "{other:?}");
    let id = meant[0].directive.id;
    let rerun = store.change_directive(&callers[0], id, ALL, Change::Rerun).await;
    assert!(matches!(rerun, Err(ChangeError::NotRerunnable)), "{rerun:?}");
    store.change_directive(&callers[1], next.directive.id, ALL, Change::Cancel).await.unwrap();
    store.change_directive(&callers[0], id, ALL, Change::Rerun).await.unwrap();
}

pub async fn what_is_due_is_taken_once_and_ended_by_its_holder(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let (ann, rule) = (caller("acme/ann", &[]), rule(Consent::Auto));
    for number in 0..12 {
        let tenant = caller(&format!("t{}/ann", number % 3), &[]);
        ask(&*store, &tenant, &rule, Ask::default()).await.unwrap();
    }
    let taken = join_all((0..6).map(|_| claim(&*store, "p", Due::Now, 3))).await.concat();
    let mut ids: Vec<String> = taken.iter().map(|claimed| claimed.directive.id.to_string()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((taken.len(), ids.len()), (12, 12), "each once");
    assert!(claim(&*store, "q", Due::Now, 99).await.is_empty());
    // Who has died is found by the database's clock; who holds an older claim does nothing any more.
    let one = ask(&*store, &ann, &rule, Ask::default()).await.unwrap().directive.id;
    let [first] = &store
        .claim_directives(Claiming { process: "p", lease_ms: -1, most: 1, what: Due::Now, names: &names() })
        .await
        .unwrap()[..]
    else {
        panic!()
    };
    assert!(store.begin_attempts(&[first.fence], 60_000).await.unwrap().is_empty(), "its lease is over");
    let others =
        Claiming { process: "r", lease_ms: 60_000, most: 9, what: Due::Now, names: &["ticket.open".to_owned()] };
    assert!(store.claim_directives(others).await.unwrap().is_empty(), "what it does not know is left to others");
    let [second] = &claim(&*store, "q", Due::Abandoned, 9).await[..] else { panic!() };
    assert!(!second.was_sent && second.directive.id == one);
    assert_eq!(settle(&*store, first.fence, &done()).await, None);
    assert_eq!(store.begin_attempts(&[first.fence, second.fence], 60_000).await.unwrap(), [second.fence]);
    assert!(store.begin_attempts(&[second.fence], 60_000).await.unwrap().is_empty(), "once");
    let again = Settlement::Again {
        error: DirectiveError { code: DirectiveErrorCode::BackendTimeout, message: "late".to_owned() },
        in_ms: 0,
        in_doubt: true,
    };
    assert_eq!(settle(&*store, second.fence, &again).await.unwrap().status, DirectiveStatus::Requested);
    let [third] = &claim(&*store, "q", Due::Now, 9).await[..] else { panic!() };
    assert!(third.in_doubt && !third.was_sent && third.directive.attempt == 2);
    // What was not sent counts as no attempt.
    let unsent = Settlement::Again {
        error: DirectiveError { code: DirectiveErrorCode::BackendUnavailable, message: "stopped".to_owned() },
        in_ms: 0,
        in_doubt: false,
    };
    let left = settle(&*store, third.fence, &unsent).await.unwrap();
    assert_eq!((left.attempt, left.max_attempts), (2, 3));
}

/// A directive that was sent, with a lease of that many milliseconds from then on.
async fn sent(store: &dyn Store, lease_ms: i64) -> Fence {
    ask(store, &caller("acme/ann", &[]), &rule(Consent::Auto), Ask::default()).await.unwrap();
    let [claimed] = &claim(store, "p", Due::Now, 9).await[..] else { panic!() };
    assert_eq!(store.begin_attempts(&[claimed.fence], lease_ms).await.unwrap(), [claimed.fence]);
    claimed.fence
}

pub async fn a_claim_that_has_run_out_is_its_holders_until_somebody_takes_it(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let kept = sent(&*store, -1).await;
    store.renew_claims(&[kept.id], "p", 60_000).await.unwrap();
    assert!(claim(&*store, "q", Due::Abandoned, 9).await.is_empty(), "renewed late");
    assert_eq!(settle(&*store, kept, &done()).await.unwrap().status, DirectiveStatus::Succeeded);
    let lost = sent(&*store, -1).await;
    let [taken] = &claim(&*store, "q", Due::Abandoned, 9).await[..] else { panic!() };
    store.renew_claims(&[lost.id], "p", -1).await.unwrap();
    assert!(claim(&*store, "r", Due::Abandoned, 9).await.is_empty(), "the lease is of whoever took it");
    assert_eq!(settle(&*store, lost, &done()).await, None);
    assert!(taken.was_sent && settle(&*store, taken.fence, &done()).await.is_some());
}

pub async fn what_was_sent_is_left_to_those_who_know_its_command(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let strangers = ["ticket.open".to_owned()];
    let claiming = Claiming { process: "q", lease_ms: -1, most: 9, what: Due::Abandoned, names: &strangers };
    sent(&*store, -1).await;
    assert!(store.claim_directives(claiming).await.unwrap().is_empty());
    let [known] = &claim(&*store, "q", Due::Abandoned, 9).await[..] else { panic!() };
    settle(&*store, known.fence, &done()).await.unwrap();
    sent(&*store, -2 * 3_600_000).await;
    assert_eq!(store.claim_directives(claiming).await.unwrap().len(), 1, "nobody else has come in an hour");
}

pub async fn a_long_intent_is_found_again(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let (ann, rule) = (caller("acme/ann", &[]), rule(Consent::Auto));
    // Nothing in it is there twice, so no database makes it shorter.
    let long = |last: u32| (0..20_000).chain([last]).map(|number| format!("{number} ")).collect::<String>();
    let first = ask(&*store, &ann, &rule, Ask { intent: Some(&long(1)), ..Ask::default() }).await.unwrap();
    let again = ask(&*store, &ann, &rule, Ask { intent: Some(&long(1)), ..Ask::default() }).await.unwrap();
    let other = ask(&*store, &ann, &rule, Ask { intent: Some(&long(2)), ..Ask::default() }).await.unwrap();
    assert_eq!((again.created, again.directive.id, other.created), (false, first.directive.id, true));
}

pub async fn a_client_has_no_key_of_the_servers(database: &dyn Database) {
    let store = database.open(ManualClock::new()).await;
    let ann = caller("acme/ann", &[]);
    let fence = sent(&*store, 60_000).await;
    let filter = SignalFilter { of_tenant: true, ascending: true, limit: 500, ..SignalFilter::default() };
    let page = store.signals(&ann, &filter).await.unwrap();
    let key = page.items.last().unwrap().fact.dedupe_key.clone().unwrap().replace(".started", ".succeeded");
    let fact = || SignalFact {
        name: "ticket.seen".to_owned(),
        payload: serde_json::Map::new(),
        metadata: serde_json::Map::new(),
        occurred_at_ms: None,
        correlation: None,
        causation: None,
        actor: None,
        subject: None,
        source: SignalSource::Api,
        dedupe_key: Some(key.clone()),
    };
    let (told_one, is_new) = store.emit(&ann.owner, fact()).await.unwrap();
    assert_eq!((told_one.fact.dedupe_key, is_new), (Some(key.clone()), true), "it reads back as it came");
    settle(&*store, fence, &done()).await.unwrap();
    assert_eq!(told(&*store, &ann).await.last().unwrap(), "directive.succeeded");
    assert!(!store.emit(&ann.owner, fact()).await.unwrap().1);
}

pub async fn what_was_over_long_ago_is_removed(database: &dyn Database) {
    let store: Arc<dyn Store> = database.open(ManualClock::new()).await;
    let (ann, rule) = (caller("acme/ann", &[]), rule(Consent::Auto));
    let id = ask(&*store, &ann, &rule, Ask::default()).await.unwrap().directive.id;
    store.change_directive(&ann, id, ALL, Change::Cancel).await.unwrap();
    store.tidy_directives(None).await.unwrap();
    assert!(store.directive(&ann, id, true).await.unwrap().is_some(), "for ever");
    store.tidy_directives(Some(-1000)).await.unwrap();
    assert!(store.directive(&ann, id, true).await.unwrap().is_none());
    assert_eq!(told(&*store, &ann).await.len(), 2, "facts stay");
    store.tidy_signals(Some(-1000)).await.unwrap();
    assert!(told(&*store, &ann).await.is_empty());
}
