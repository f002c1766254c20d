//! Messages as intents: what the user wants done on the workflow screen, clause by clause.

use super::clause::{self, Clause};
use super::comparison::Comparison;
use super::drafts::DraftStep;
use super::entities::{self, Subject};
use super::one_shot::NewWorkflow;
use super::steps::{self, Kind, Step};
use super::table_intents::{self, TableWish};
use super::tokens::{Token, tokens};

/// How many requests of one message are served; more in one go is not a message but a document.
const MAX_INTENTS: usize = 10;

/// Something the user wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Intent {
    /// What a workflow does: the named one, else the one on the screen.
    ExplainRule(Option<String>),
    /// What one of its steps does.
    ExplainStep(String),
    /// Which workflows there are.
    Rules,
    /// The user's own alerts.
    Alerts(AlertFilter),
    /// The alerts a rule has raised: the named one, else the one on the screen.
    AlertsOfRule { rule: Option<String>, filter: AlertFilter },
    /// One alert.
    Alert(String),
    /// Which action types, trigger types or entities there are.
    Catalogue(Catalogue),
    /// A draft's next steps.
    Draft(Vec<DraftStep>),
    /// A whole workflow from one sentence.
    New(Box<NewWorkflow>),
    /// A change of a saved workflow.
    ChangeRule,
    /// Something about table configurations.
    Table(TableWish),
}

/// Which alerts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct AlertFilter {
    pub status: Option<&'static str>,
    pub severity: Option<&'static str>,
}

/// The lists a workflow is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Catalogue {
    ActionTypes,
    TriggerTypes,
    Entities,
}

/// What surrounds a message and decides how it is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Surroundings {
    /// Whether this is the screen of the table configurations.
    pub is_tables: bool,
    /// Whether a draft is open.
    pub has_draft: bool,
    /// The names of the steps on the screen.
    pub step_names: Vec<String>,
}

/// What `text` asks for, in order. Neighbouring steps of a draft, and neighbouring table changes, are one intent.
pub(super) fn read(text: &str, around: &Surroundings) -> Vec<Intent> {
    let all = tokens(text);
    let found = read_tokens(&all, around);
    let starts = |intent: &Intent| matches!(intent, Intent::Draft(steps) if matches!(steps.first(), Some(DraftStep::Start { .. })));
    match found.iter().any(starts) && !around.has_draft {
        // The rest of the message speaks of the draft it starts.
        true => read_tokens(&all, &Surroundings { has_draft: true, ..around.clone() }),
        false => found,
    }
}

fn read_tokens(all: &[Token], around: &Surroundings) -> Vec<Intent> {
    let mut found: Vec<Intent> = Vec::new();
    for clause in clause::clauses(all, |clause| single(clause, around).is_some()) {
        let Some(intent) = single(clause, around) else { continue };
        if found.contains(&intent) && !matches!(intent, Intent::Draft(_) | Intent::Table(TableWish::Change(_))) {
            continue;
        }
        match (found.last_mut(), intent) {
            (Some(Intent::Draft(steps)), Intent::Draft(more)) => steps.extend(more),
            (Some(Intent::Table(TableWish::Change(changes))), Intent::Table(TableWish::Change(more))) => {
                table_intents::append(changes, more);
            }
            // A new workflow is previewed anyway, and what "send …" adds to its sentence is what it does.
            (Some(Intent::New(_)), Intent::Draft(steps)) if steps == [DraftStep::Preview] => {}
            (Some(Intent::New(wish)), Intent::Draft(steps)) if matches!(steps.as_slice(), [DraftStep::Add(_)]) => {
                wish.kind = wish.kind.take().or(steps.into_iter().find_map(DraftStep::into_kind));
            }
            (_, intent) => found.push(intent),
        }
    }
    found.truncate(MAX_INTENTS);
    found
}

fn single(clause: Clause<'_>, around: &Surroundings) -> Option<Intent> {
    if around.is_tables {
        return table_intents::read(clause).map(Intent::Table);
    }
    if let Some(id) = clause.uuid().filter(|_| clause.has(&["alert", "notification"])) {
        return Some(Intent::Alert(id.to_lowercase()));
    }
    draft(clause, around.has_draft)
        .or_else(|| saved_rule_change(clause))
        .or_else(|| explained_step(clause, around))
        .or_else(|| alerts(clause))
        .or_else(|| catalogue(clause))
        .or_else(|| rules(clause))
        .or_else(|| table_intents::schema(clause).map(Intent::Table))
}

/// Building: "create a workflow …", "add …", "remove the step …", "preview it".
fn draft(clause: Clause<'_>, has_draft: bool) -> Option<Intent> {
    let verb = clause.verb();
    let is_about_workflow = clause.has(&["workflow", "rule", "automation", "draft"]);
    let names_step = clause.has(&["step", "node", "action"]);
    match verb {
        "create" | "build" | "make" | "start" | "set" | "design" | "draft" | "begin" if is_about_workflow => {
            Some(creation(clause))
        }
        "alert" | "notify" | "email" | "warn" | "tell"
            if clause.has(&["when", "whenever", "if", "about"]) && !has_draft =>
        {
            steps::condition(clause).map(|_| creation(clause))
        }
        "preview" | "finish" | "done" => Some(Intent::Draft(vec![DraftStep::Preview])),
        "show" | "what" | "describe" | "explain" | "tell" if clause.has(&["draft"]) => Some(Intent::Draft(Vec::new())),
        "show" | "see" | "send" if clause.has(&["preview"]) => Some(Intent::Draft(vec![DraftStep::Preview])),
        "remove" | "delete" | "drop" if names_step || (has_draft && !is_about_workflow) => {
            let name = clause.quoted().map(str::to_owned).or_else(|| named_step(clause));
            let spoken = || clause.from(clause.position(&["remove", "delete", "drop"])? + 1).leading_name();
            Some(Intent::Draft(vec![DraftStep::Remove(name.or_else(spoken)?)]))
        }
        "add" | "append" | "insert" | "put" | "then" | "otherwise" | "else" | "if" | "send" | "wait" | "log"
        | "set" | "raise"
            if has_draft || names_step || matches!(verb, "add" | "append" | "insert") =>
        {
            let steps: Vec<DraftStep> = Step::read(clause).into_iter().map(DraftStep::Add).collect();
            match steps.is_empty() {
                true => names_step.then(|| Intent::Draft(vec![DraftStep::AddUnknown])),
                false => Some(Intent::Draft(steps)),
            }
        }
        _ => None,
    }
}

/// "Delete the workflow X", "deactivate this rule": what no tool of this screen does from plain words.
fn saved_rule_change(clause: Clause<'_>) -> Option<Intent> {
    let verbs = [
        "delete",
        "remove",
        "drop",
        "deactivate",
        "activate",
        "disable",
        "enable",
        "change",
        "edit",
        "update",
        "rename",
    ];
    let is_about_rule = clause.has(&["workflow", "rule", "automation", "workflows", "rules"]);
    (verbs.contains(&clause.verb()) && is_about_rule).then_some(Intent::ChangeRule)
}

/// A workflow that is described is made in one go, one that is only named is drafted step by step.
fn creation(clause: Clause<'_>) -> Intent {
    let name = clause.name_after(&["called", "named"]);
    let subject = Subject::read(clause);
    let trigger = entities::trigger(clause);
    // What the workflow does is said after its name and its trigger: "that …", "which …", "to …", "when …".
    let does = clause.position(&["that", "which", "to", "when", "whenever", "if", "alert", "notify", "email"]);
    let condition = steps::condition(clause);
    // A condition is read on its own, and "updates" without a field is what sets the workflow off.
    let kind = does
        .and_then(|at| steps::kind(clause.from(at)))
        .filter(|kind| !matches!(kind, Kind::Condition(_) | Kind::UpdateField(None)));
    if clause.has(&["draft"]) || (condition.is_none() && kind.is_none()) {
        return Intent::Draft(vec![DraftStep::Start { name, subject, trigger }]);
    }
    Intent::New(Box::new(NewWorkflow { name, subject, trigger, condition, kind }))
}

fn explained_step(clause: Clause<'_>, around: &Surroundings) -> Option<Intent> {
    let asks =
        clause.has(&["explain", "describe", "what", "how", "detail", "details", "tell", "show", "who", "configured"]);
    if !asks {
        return None;
    }
    if clause.has(&["who"]) && clause.has(&["alert", "alerts", "notified", "alerted"]) {
        return Some(Intent::ExplainStep("create_alert".to_owned()));
    }
    let said = clause.text().to_lowercase();
    let on_screen = around.step_names.iter().find(|name| said.contains(&name.to_lowercase()));
    let name = match clause.has(&["step", "node", "action"]) {
        true => on_screen.cloned().or_else(|| clause.quoted().map(str::to_owned)).or_else(|| named_step(clause)),
        false => on_screen.cloned(),
    };
    name.map(Intent::ExplainStep)
}

/// The step's name beside "step", "node" or "action": after it, else before it.
fn named_step(clause: Clause<'_>) -> Option<String> {
    const WORDS: [&str; 3] = ["step", "node", "action"];
    let at = clause.position(&WORDS)?;
    if let Some(name) = clause.name_after(&["called", "named"]).or_else(|| clause.from(at + 1).leading_name()) {
        return Some(name);
    }
    let verbs =
        ["explain", "describe", "does", "about", "is", "remove", "delete", "drop", "show", "of", "how", "what", "the"];
    let before = clause.until(at);
    let start = before.0.iter().rposition(|token| clause::is_one(token, &verbs)).map_or(0, |i| i + 1);
    before.from(start).leading_name()
}

fn alerts(clause: Clause<'_>) -> Option<Intent> {
    if !clause.has(&["alerts", "inbox", "alert"]) || clause.has(&["step", "action", "node"]) {
        return None;
    }
    let filter = AlertFilter { status: status(clause), severity: severity(clause) };
    let of_rule = ["this", "the", "for", "by", "from"].iter().any(|lead| {
        clause.phrase(&[lead, "rule"])
            || clause.phrase(&[lead, "workflow"])
            || clause.phrase(&[lead, "this", "workflow"])
    });
    let fired = clause.has(&["fired", "raised", "history", "triggered", "sent"]);
    if of_rule || fired {
        let rule = clause.quoted().map(str::to_owned).or_else(|| rule_name(clause));
        return Some(Intent::AlertsOfRule { rule, filter });
    }
    let asks = clause.has(&["alerts", "inbox"]) || (clause.has(&["any", "my"]) && clause.has(&["alert"]));
    let is_workflow_talk =
        clause.has(&["workflow", "rule"]) || matches!(clause.verb(), "add" | "create" | "build" | "remove");
    (asks && !is_workflow_talk).then_some(Intent::Alerts(filter))
}

fn catalogue(clause: Clause<'_>) -> Option<Intent> {
    let is_of_this = clause.has(&["this", "it"])
        || (clause.has(&["workflow", "rule"]) && !clause.has(&["available", "there", "use"]));
    let asks =
        clause.has(&["what", "which", "list", "show", "discover", "available", "any", "are"]) || clause.0.len() <= 3;
    if is_of_this || !asks {
        return None;
    }
    if clause.has(&["trigger", "triggers"]) {
        Some(Intent::Catalogue(Catalogue::TriggerTypes))
    } else if clause.has(&["entity", "entities"]) || (clause.has(&["tables"]) && !clause.has(&["schema"])) {
        Some(Intent::Catalogue(Catalogue::Entities))
    } else if clause.has(&["actions", "steps", "blocks"]) || clause.phrase(&["action", "types"]) {
        Some(Intent::Catalogue(Catalogue::ActionTypes))
    } else {
        None
    }
}

fn rules(clause: Clause<'_>) -> Option<Intent> {
    let is_this = clause.has(&["this", "it"]);
    if clause.has(&["rules", "workflows", "automations"]) && !is_this {
        return Some(Intent::Rules);
    }
    let asks = clause.has(&[
        "what",
        "explain",
        "describe",
        "summarise",
        "summarize",
        "how",
        "walk",
        "tell",
        "show",
        "when",
        "why",
    ]);
    if !asks || Comparison::find(clause).is_some_and(|found| !found.value.is_string()) {
        return None;
    }
    if clause.has(&["workflow", "rule", "automation"]) || is_this {
        let on_screen = clause.phrase(&["this", "workflow"]) || clause.phrase(&["this", "rule"]);
        let name = clause.quoted().map(str::to_owned).or_else(|| rule_name(clause).filter(|_| !on_screen));
        let is_greeting = clause.0.len() <= 2 && !clause.has(&["explain", "describe", "show"]);
        return (!is_greeting).then_some(Intent::ExplainRule(name));
    }
    // "What does Check Stock do?": a name is capitalised.
    if clause.phrase(&["what", "does"]) {
        let name = clause.quoted().map(str::to_owned).or_else(|| clause.name_after(&["does"]));
        let is_name = |name: &String| name.starts_with(char::is_uppercase);
        return name.filter(is_name).map(|name| Intent::ExplainRule(Some(name)));
    }
    // "Explain Low Stock Alert": what follows the verb is the name.
    let verb = clause.position(&["explain", "describe", "summarise", "summarize"])?;
    clause.from(verb + 1).leading_name().map(|name| Intent::ExplainRule(Some(name)))
}

/// The rule's name beside "workflow" or "rule": after "called", else capitalised words before or after it.
fn rule_name(clause: Clause<'_>) -> Option<String> {
    const WORDS: &[&str] = &["workflow", "rule", "automation"];
    if let Some(name) = clause.name_after(&["called", "named"]) {
        return Some(name);
    }
    let is_capital = |token: &Token| token.text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    // The first word of a sentence is capitalised without being a name.
    let opens =
        ["the", "explain", "describe", "what", "show", "tell", "which", "list", "this", "how", "alerts", "any", "does"];
    let is_name = |token: &&Token| is_capital(token) && !clause::is_one(token, &opens);
    // In "the Simple Test Workflow workflow" the noun is the one in lower case; in "explain Simple Test Workflow" it is the name's end.
    let noun = clause.0.iter().position(|token| clause::is_one(token, WORDS) && !is_capital(token));
    let (before, after) = match noun {
        Some(at) => (clause.until(at), clause.from(at + 1)),
        None => (clause.until(clause.position(WORDS)? + 1), Clause(&[])),
    };
    let text = |token: &Token| token.text.clone();
    let after: Vec<String> = after.0.iter().take_while(is_name).map(text).collect();
    if !after.is_empty() {
        return Some(after.join(" "));
    }
    let mut before: Vec<String> = before.0.iter().rev().take_while(is_name).map(text).collect();
    before.reverse();
    let is_more_than_noun = noun.is_some() || before.len() > 1;
    (!before.is_empty() && is_more_than_noun).then(|| before.join(" "))
}

fn status(clause: Clause<'_>) -> Option<&'static str> {
    let known: [(&[&str], &'static str); 4] = [
        (&["active", "open", "unread"], "active"),
        (&["acknowledged"], "acknowledged"),
        (&["dismissed"], "dismissed"),
        (&["resolved", "closed"], "resolved"),
    ];
    known.iter().find(|(words, _)| clause.has(words)).map(|(_, status)| *status)
}

fn severity(clause: Clause<'_>) -> Option<&'static str> {
    ["critical", "high", "medium", "low"].into_iter().find(|level| clause.has(&[level]))
}
