//! The table of intents: words that a request has, a tool that must be offered for it, and the script that carries it out.
//! The first line that fits is taken; a script that finds nothing for it in the request leaves it to the next one.

use super::scene::{Scene, Script};
use super::words::Clause;
use super::{building, planning, rules, tables};

/// Something that a request may want.
pub(super) struct Intent {
    /// The verbs that begin it.
    pub verbs: &'static [&'static str],
    /// Its other words: a word of each group.
    words: &'static [&'static [&'static str]],
    /// Without this tool it is not understood.
    pub tool: &'static str,
    /// Its calls and its text.
    pub run: Run,
    /// An example for the help; empty where it is worth none.
    pub example: &'static str,
}

/// What carries an intent out, by what it reads of a message.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// The request alone.
    One(fn(&Scene<'_>, Clause<'_>) -> Script),
    /// The request together with all that stands behind it.
    Rest(fn(&Scene<'_>, Clause<'_>) -> Script),
    /// All such requests of the message at once.
    All(fn(&Scene<'_>, &[Clause<'_>]) -> Script),
    /// Lists what the tool lists: what its things are called, and whose they are.
    List(&'static str, &'static str),
}

impl Intent {
    /// Whether `clause` may be such a request.
    pub(super) fn fits(&self, scene: &Scene<'_>, clause: Clause<'_>) -> bool {
        let has_words = self.verbs.contains(&clause.verb()) && self.words.iter().all(|words| clause.has(words));
        has_words && scene.tool(self.tool).is_some()
    }
}

type Words = &'static [&'static str];

const ADD: Words = &["add", "append", "insert", "log", "otherwise", "send", "wait"];
const ALERTED: Words = &["alert", "alerted", "notified"];
const CHANGE: Words = &["activate", "change", "deactivate", "delete", "disable", "edit", "enable", "remove", "rename"];
const CHANGE_TABLE: Words = &["change", "delete", "drop", "hide", "make", "remove"];
const CREATE: Words = &["build", "create", "design", "make", "start"];
const LIST: Words = &["alerts", "are", "do", "list", "my", "rules", "show", "what", "which"];
const RULE: Words = &["automation", "rule", "workflow"];
const SHOW: Words = &["describe", "explain", "how", "show", "walk", "what"];
const STEP: Words = &["action", "node", "step"];
const TABLES: Words = &["configs", "configurations", "tables"];
const WHEN: Words = &["about", "if", "when", "whenever"];

use Run::{All, List, One, Rest};

/// The table.
pub(super) const INTENTS: &[Intent] = &[
    line(CREATE, &[RULE], "preview_workflow", Rest(SENTENCE), "create a workflow that alerts when stock is low"),
    line(&["alert", "email", "warn"], &[WHEN], "preview_workflow", Rest(SENTENCE), ""),
    line(&["plan"], &[], "create_plan", Rest(planning::look_around), "plan a look at my rules and alerts"),
    line(
        &["plan"],
        &[],
        planning::OF_PROJECTS,
        Rest(planning::week),
        "plan my week, and add a task \"Call the printer\"",
    ),
    line(&["carry"], &[], "create_plan", Rest(planning::carry_out), ""),
    line(ADD, &[], "preview_workflow", One(building::add), "add an email to ops@example.com"),
    line(CHANGE, &[RULE], "get_workflow_rule", One(rules::refuse), ""),
    line(&["who"], &[ALERTED], "explain_workflow_node", One(rules::who_is_alerted), "who gets alerted?"),
    line(SHOW, &[STEP], "explain_workflow_node", One(rules::step), "explain the step Check Stock Level"),
    line(LIST, &[&["rules", "workflows"]], "list_workflow_rules", List("workflow", ""), "list the rules"),
    line(LIST, &[&["alerts"]], "list_my_alerts", List("alert", " for you"), "list my critical alerts"),
    line(SHOW, &[], "get_workflow_rule", One(rules::explain), "what does this workflow do?"),
    line(LIST, &[TABLES], "list_table_configs", List("table configuration", ""), "which tables do we have?"),
    line(CHANGE_TABLE, &[], "preview_table_config", All(tables::change), "hide the quantity column"),
    line(SHOW, &[&["columns", "table"]], "get_table_config", One(tables::show), "show the orders table"),
];

const SENTENCE: fn(&Scene<'_>, Clause<'_>) -> Script = building::one_sentence;

const fn line(verbs: Words, words: &'static [Words], tool: &'static str, run: Run, example: &'static str) -> Intent {
    Intent { verbs, words, tool, run, example }
}
