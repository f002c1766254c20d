//! Every statement that is said to a database, searched for its owner: who reads or changes rows that are somebody's
//! names the tenant and the user, or is one of a few that have a reason not to.

use std::fs;
use std::path::Path;

/// The tables with the columns `tenant` and `user_id`.
const OWNED: [&str; 20] = [
    "approvals",
    "chats",
    "conversation_state",
    "conversations",
    "directive_keys",
    "directives",
    "drafts",
    "executions",
    "feedback",
    "file_uses",
    "files",
    "messages",
    "payloads",
    "plan_steps",
    "plans",
    "previews",
    "runs",
    "search_texts",
    "summaries",
    "trail",
];

/// Why a statement names no owner.
#[derive(Debug, Clone, Copy)]
enum Why {
    /// Its run is one that this process begins, runs or ends, or its directive one of which this process holds a claim: the
    /// ports name it by its id, which was found with its owner before.
    OwnRun,
    /// It looks at nothing but times and processes.
    Times,
    /// It is of the tenant, by a role: of those who may approve.
    Role,
    /// It finds or changes nothing.
    Probe,
}

/// What names no owner: the file, how the text begins, and why.
const EXCEPTIONS: [(&str, &str, Why); 54] = [
    ("sql/approvals.rs", "FROM approvals a WHERE a.tenant = $1 AND a.user_id <> $2 AND a.role", Why::Role),
    (
        "sql/approvals.rs",
        "FROM approvals a WHERE a.tenant = $1 AND a.user_id <> $2 AND a.id = $3 AND a.role",
        Why::Role,
    ),
    ("sql/approvals.rs", "UPDATE approvals SET state = $1, decided_at = $2", Why::Role),
    ("sql/approvals.rs", "UPDATE approvals SET expired = 1 WHERE id IN", Why::Times),
    ("sql/directives/change.rs", "SELECT COUNT(*) FROM directives d JOIN directives o", Why::Role),
    ("sql/directives/mod.rs", "FROM directives WHERE tenant = $1", Why::Role),
    ("sql/directives/mod.rs", ") AS own UNION SELECT id FROM (SELECT id FROM directives", Why::Role),
    ("sql/directives/request.rs", "FROM directives WHERE tenant = $1 AND name = $2 AND intent = $3", Why::Role),
    ("sql/directives/queue.rs", "SELECT id FROM directives WHERE status = 'requested' AND due_at", Why::Times),
    ("sql/directives/queue.rs", "SELECT id FROM directives WHERE status = 'running' AND lease_until", Why::Times),
    ("sql/directives/queue.rs", "SELECT id FROM directives WHERE status = 'pending_approval'", Why::Times),
    ("sql/directives/queue.rs", "FROM directives WHERE status = 'pending_approval'", Why::Times),
    ("sql/directives/queue.rs", "FROM directives WHERE status = 'requested' AND runs_as = 'caller'", Why::Times),
    ("sql/directives/queue.rs", "DELETE FROM directives WHERE id IN", Why::Times),
    ("sql/directives/queue.rs", "UPDATE directives SET status = 'running'", Why::Times),
    ("sql/directives/queue.rs", "UPDATE directives SET token = token + 1", Why::Times),
    ("sql/directives/queue.rs", "UPDATE directives SET sent_at", Why::OwnRun),
    ("sql/directives/queue.rs", "FROM directives WHERE id @one_of($1) AND status = 'running'", Why::OwnRun),
    ("sql/directives/queue.rs", "UPDATE directives SET lease_until", Why::OwnRun),
    ("sql/drafts.rs", "DELETE FROM drafts WHERE id IN (SELECT id FROM drafts WHERE expires_at <= $1", Why::Times),
    ("sql/files.rs", "DELETE FROM files WHERE expires_at <= @now AND (tenant, user_id, id) IN", Why::Times),
    ("sql/files.rs", "SELECT file_id FROM file_removals WHERE at <= @now", Why::Times),
    ("sql/previews.rs", "DELETE FROM previews WHERE id IN ( SELECT id FROM previews", Why::Times),
    ("sql/ready.rs", "DELETE FROM drafts WHERE id IS NULL", Why::Probe),
    ("sql/runs/append.rs", "UPDATE runs SET turns = $2", Why::OwnRun),
    ("sql/runs/append.rs", "UPDATE runs SET calling = $2", Why::OwnRun),
    ("sql/runs/decided.rs", "FROM approvals a JOIN runs r ON r.id = a.decided_in", Why::OwnRun),
    ("sql/runs/decided.rs", "SELECT run_seq FROM runs WHERE id = $1", Why::OwnRun),
    ("sql/runs/ending.rs", "UPDATE runs SET turns = $2", Why::OwnRun),
    ("sql/runs/ending.rs", "SELECT COUNT(*) FROM runs WHERE id = $1 AND state = $2", Why::OwnRun),
    ("sql/runs/ending.rs", "SELECT COALESCE(MAX(seq), -1) + 1 FROM trail WHERE run_id = $1", Why::OwnRun),
    ("sql/runs/history.rs", "SELECT tenant, user_id, conversation, run_seq, parent_run_seq", Why::OwnRun),
    ("sql/runs/leases.rs", ", r.lease_until <= @now - $2 AS is_long_over", Why::Times),
    ("sql/runs/leases.rs", "UPDATE runs SET watched_until =", Why::OwnRun),
    ("sql/runs/leases.rs", "DELETE FROM trail WHERE id IN (SELECT id FROM trail WHERE at < $1", Why::Times),
    ("sql/runs/leases.rs", "UPDATE runs SET request_key = NULL", Why::Times),
    ("sql/runs/leases.rs", "UPDATE runs SET lease_until =", Why::Times),
    ("sql/runs/leases.rs", "INSERT INTO partials (run_id, turn, at, body) SELECT r.id", Why::OwnRun),
    ("sql/runs/leases.rs", "SELECT id FROM runs WHERE id", Why::OwnRun),
    ("sql/runs/promote.rs", "FROM runs r WHERE r.id = $1", Why::OwnRun),
    ("sql/runs/promote.rs", "UPDATE runs SET state = 'running' WHERE id = $1 AND state = 'queued'", Why::OwnRun),
    ("sql/runs/promote.rs", "SELECT state FROM runs WHERE id = $1", Why::OwnRun),
    ("sql/runs/promote.rs", "SELECT tenant, user_id, conversation, run_seq, parent_run_seq", Why::OwnRun),
    ("sql/runs/promote.rs", "UPDATE runs SET seen_before = $2 WHERE id = $1", Why::OwnRun),
    ("sql/runs/reap.rs", "SELECT id FROM runs WHERE state IN ('queued', 'running')", Why::Times),
    ("sql/runs/reap.rs", "SELECT tenant, user_id, conversation, run_seq, turns, calling", Why::Times),
    ("sql/runs/reap.rs", "UPDATE runs SET state = 'interrupted'", Why::Times),
    ("sql/runs/reap.rs", "SELECT COUNT(*) FROM runs WHERE state IN", Why::Times),
    ("sql/runs/reap.rs", "UPDATE runs SET lease_until = 0", Why::Times),
    ("statement/dialect.rs", "; SELECT tenant, user_id, conversation, run_seq, charged", Why::OwnRun),
    ("sql/runs/append.rs", "UPDATE runs SET charged = $2 WHERE id = $1", Why::OwnRun),
    ("sql/views/chats.rs", "SELECT user_id FROM chats WHERE tenant = $1 AND user_claim = $2", Why::Role),
    ("sql/places.rs", "DELETE FROM conversation_state WHERE unused = 1", Why::Times),
    ("sql/views/delete.rs", "SELECT tenant, user_id, id FROM conversations WHERE unlisted = 1", Why::Times),
];

/// The same of a run's place, which is read before anything else of a summary is.
const PLACE: (&str, &str, Why) =
    ("sql/views/summaries.rs", "SELECT tenant, user_id, conversation, run_seq FROM runs WHERE id = $1", Why::OwnRun);

#[test]
fn every_statement_about_somebodys_rows_names_the_tenant_and_the_user() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let (mut statements, mut violations, mut used) = (0, Vec::new(), vec![0; EXCEPTIONS.len() + 1]);
    let exceptions: Vec<_> = EXCEPTIONS.iter().chain([&PLACE]).collect();
    for (path, code) in files(&root) {
        for text in texts(&code).into_iter().filter(|text| is_about_owned(text)) {
            statements += 1;
            if names_owner(&text) {
                continue;
            }
            let known = exceptions.iter().position(|(file, start, _)| *file == path && text.starts_with(start));
            match known {
                Some(nth) => used[nth] += 1,
                None => violations.push(format!("{path}: {text}")),
            }
        }
    }
    assert!(violations.is_empty(), "these name no owner:\n{}", violations.join("\n"));
    for (times, (file, start, why)) in used.iter().zip(exceptions) {
        assert!(*times > 0, "nothing needs this exception any more: {file}: {start} ({why:?})");
    }
    assert!(statements > 80, "only {statements} statements were found: the search has gone blind");
}

/// Owners are bound by one function, and reach the columns in no other way.
#[test]
fn owners_are_bound_by_their_scope_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let owners = ["tenant", "&tenant", "user", "&user"];
    // Those who may approve, of the tenant; chats, of which an administrator reads those of the tenant; and the tenant
    // whose runs are counted one after the other, where there is one, and whose use is added up. A batch binds both. And
    // the audit record, whose lines are apart from what they tell of: it names the tenant's chain and who did what.
    let apart = [
        ("sql/approvals.rs", 6),
        ("sql/audit.rs", 2),
        // Signals and their deliveries are the tenant's, and so is a directive for those who may decide it.
        ("sql/deliveries.rs", 3),
        // Whether there is a tenant whose files are counted, and their turn.
        ("sql/files.rs", 2),
        // Rows that are held and change together are a list, which has the owner of each.
        ("sql/directives/change.rs", 6),
        ("sql/directives/mod.rs", 5),
        ("sql/directives/queue.rs", 3),
        ("sql/directives/request.rs", 3),
        ("sql/signals.rs", 16),
        ("sql/previews.rs", 2),
        ("sql/quotas.rs", 4),
        ("sql/runs/append.rs", 1),
        ("sql/runs/decided.rs", 1),
        ("sql/runs/pending_limits.rs", 2),
        ("sql/views/chats.rs", 2),
        ("sql/usage.rs", 3),
        ("postgres/mod.rs", 3),
    ];
    let mut found = Vec::new();
    for (path, code) in files(&root) {
        if path == "scope.rs" {
            continue;
        }
        let bound = parameters(&code).into_iter();
        let is_owner = |text: &&str| {
            owners.iter().any(|name| text.split(['.', '(']).next() == Some(*name)) || text.contains("owner.")
        };
        found.extend(bound.filter(is_owner).map(|text| format!("{path}: {text}")));
        let by_parts = code.matches("scope.tenant()").count() + code.matches("scope.user()").count();
        let allowed = apart.iter().find(|(file, _)| *file == path).map_or(0, |(_, count)| *count);
        if by_parts > allowed {
            found.push(format!("{path}: {by_parts} parts of a scope, and {allowed} have a reason"));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// Transactions that reach everybody's rows: how many there are in each file, and each has a reason to.
#[test]
fn transactions_reach_beyond_a_tenant_where_there_is_a_reason_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let expected = [
        // Times alone.
        ("postgres/mod.rs", 4),
        ("sql/approvals.rs", 2),
        ("sql/previews.rs", 1),
        ("sql/ready.rs", 1),
        ("sql/runs/leases.rs", 4),
        ("sql/runs/reap.rs", 4),
        ("sql/views/delete.rs", 1),
        // What is due, whoever's it is, and what holds a claim of it.
        ("sql/deliveries.rs", 5),
        ("sql/directives/queue.rs", 9),
        // Bytes that are to be removed, and rows that nobody needs any more.
        ("sql/files.rs", 3),
        // The audit record, which is the operator's, and tools of servers, which are nobody's.
        ("sql/audit.rs", 7),
        ("sql/pins.rs", 3),
        // How far schedules have come, which are the operator's.
        ("sql/schedules.rs", 2),
        // Of a run of this process, which its id alone names; narrowed to its owner where anything is read.
        ("sql/runs/append.rs", 2),
        ("sql/runs/ending.rs", 1),
        ("sql/runs/history.rs", 1),
        ("sql/runs/promote.rs", 2),
        ("sql/views/summaries.rs", 2),
    ];
    let found: Vec<(String, usize)> = files(&root)
        .into_iter()
        .map(|(path, code)| (path, code.matches("Reach::All").count() + code.matches("Reach::Leases").count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let mut expected: Vec<_> = expected.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect();
    expected.sort();
    assert_eq!(found, expected);
}

/// What the databases write in different words stands in a text as a token; one that is none is found when it is run, or here.
#[test]
fn every_token_of_a_text_is_one_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let table = fs::read_to_string(root.join("statement/dialect.rs")).unwrap();
    let known: Vec<&str> = table.split("name: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let (mut tokens, mut unknown) = (0, Vec::new());
    for (path, code) in files(&root).into_iter().filter(|(path, _)| path.starts_with("sql/") || path == "approval.rs") {
        for text in texts(&code) {
            for rest in text.split('@').skip(1) {
                let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(rest.len());
                tokens += 1;
                if !known.contains(&&rest[..end]) {
                    unknown.push(format!("{path}: @{}", &rest[..end]));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "\n{}", unknown.join("\n"));
    assert!(tokens > 40, "only {tokens} tokens were found: the search has gone blind");
}

#[test]
fn the_search_finds_what_is_bound() {
    let code = "query(X).bind((scope, f(a, b), tenant)).bind(user.to_owned()).fetch_all(y)";
    assert_eq!(parameters(code), ["scope", "f(a, b)", "tenant", "user.to_owned()"]);
}

#[test]
fn the_search_finds_what_names_no_owner() {
    let rows = [
        ("SELECT body FROM messages WHERE conversation = $1", true, false, "no owner"),
        ("SELECT body FROM messages m WHERE m.tenant = $1 AND m.user_id = $2", true, true, "both"),
        ("DELETE FROM runs WHERE tenant = $1", true, false, "a tenant alone"),
        ("UPDATE chats SET app = $1 WHERE user_id = $2", true, false, "a user alone"),
        ("INSERT INTO drafts (id, tenant, user_id, body) VALUES", true, true, "a new row of somebody"),
        ("INSERT INTO drafts (id, body) VALUES", true, false, "a new row of nobody"),
        ("SELECT 1", false, false, "no table"),
        ("SELECT value FROM json_each($1)", false, false, "no table of somebody"),
    ];
    for (text, owned, named, reason) in rows {
        assert_eq!((is_about_owned(text), names_owner(text)), (owned, named), "{reason}");
    }
}

fn is_about_owned(text: &str) -> bool {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    words.windows(2).any(|pair| matches!(pair[0], "FROM" | "JOIN" | "UPDATE" | "INTO") && OWNED.contains(&pair[1]))
}

fn names_owner(text: &str) -> bool {
    if text.starts_with("INSERT INTO") {
        return text.contains("tenant, user_id");
    }
    text.contains("tenant = ") && text.contains("user_id = ")
}

/// The program texts below a folder, without their tests.
fn files(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let code = fs::read_to_string(&path).unwrap();
                let code = code.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((path.strip_prefix(root).unwrap().display().to_string(), code));
            }
        }
    }
    found.sort();
    found
}

/// What is bound, one by one: `a` and `f(b, c)` of `.bind((a, f(b, c)))`.
fn parameters(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for rest in code.split(".bind(").skip(1) {
        let (mut depth, mut from, is_list) = (0, 0, rest.starts_with('('));
        for (at, letter) in rest.char_indices() {
            let is_between = depth == i32::from(is_list);
            match letter {
                '(' if is_list && at == 0 => from = 1,
                ',' | ')' if is_between => {
                    found.push(rest[from..at].trim());
                    from = at + 1;
                }
                _ => {}
            }
            match letter {
                '(' => depth += 1,
                ')' if is_between => break,
                ')' => depth -= 1,
                _ => {}
            }
        }
    }
    found
}

/// The texts in quotation marks, each with single blanks.
fn texts(code: &str) -> Vec<String> {
    let (mut texts, mut inside, mut escaped) = (Vec::new(), None::<String>, false);
    let code: String =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    for letter in code.chars() {
        match (&mut inside, letter) {
            (Some(text), letter) if escaped => {
                text.push(letter);
                escaped = false;
            }
            (Some(_), '\\') => escaped = true,
            (Some(_), '"') => texts.extend(inside.take()),
            (Some(text), letter) => text.push(letter),
            (None, '"') => inside = Some(String::new()),
            (None, _) => {}
        }
    }
    texts.iter().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}
