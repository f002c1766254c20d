//! One turn, decided: the request in, words and calls out. Every request of the message runs as a script; independent ones get
//! their calls in the same turn.

use super::intents::{INTENTS, Run};
use super::scene::{Answer, Pause, Scene, Script};
use super::words::{Clause, clauses, words};
use super::{any_tool, rules, say};
use crate::agent::ports::llm::ChatRequest;
use crate::chat::message::Author;
use crate::chat::preview::{Decided, Verdict};

/// The text before the first calls.
const LEAD: &str = "Let me look up what that needs.\n\n";

/// The next turn of the conversation in `request`.
pub(super) fn answer(request: &ChatRequest<'_>) -> Answer {
    let Some(scene) = Scene::read(request) else { return Answer { text: help(request), calls: Vec::new() } };
    let mut texts: Vec<String> = Vec::new();
    if scene.done.is_empty() {
        texts.extend(scene.message.decisions.iter().map(decided));
    }
    let news = texts.len();
    let mut calls = Vec::new();
    for script in scripts(&scene) {
        match script {
            Ok(text) | Err(Pause::Say(text)) => texts.push(text),
            Err(Pause::Call(call)) if calls.contains(&call) => {}
            Err(Pause::Call(call)) => calls.push(call),
            // A word or two after a decision need no answer of their own.
            Err(Pause::Other) if news > 0 && scene.message.text.split_whitespace().count() <= 3 => {}
            Err(Pause::Other) if scene.message.text.to_lowercase().starts_with("thank") => {
                texts.push("You're welcome.".to_owned())
            }
            Err(Pause::Other) => texts.push(help(request)),
        }
    }
    if !calls.is_empty() {
        // The texts of other scripts wait for the last turn: they run again then.
        texts.truncate(news);
        texts.extend(scene.done.is_empty().then(|| LEAD.to_owned()));
    }
    Answer { text: texts.join("\n\n"), calls }
}

/// The scripts of the message, as far as each has come.
fn scripts(scene: &Scene<'_>) -> Vec<Script> {
    // A message that the server writes for the user is about the calls before it.
    let all = if scene.message.author == Author::User { words(&scene.message.text) } else { Vec::new() };
    let requests = clauses(&all, |verb| INTENTS.iter().any(|intent| intent.verbs.contains(&verb)));
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, clause) in requests.iter().enumerate() {
        let rest = Clause(all.get(start..).unwrap_or_default());
        start += clause.0.len();
        for intent in INTENTS.iter().filter(|intent| intent.fits(scene, *clause)) {
            let same = || requests.iter().filter(|other| intent.fits(scene, **other)).copied().collect::<Vec<_>>();
            let script = match intent.run {
                Run::One(run) => run(scene, *clause),
                Run::Rest(run) => run(scene, rest),
                Run::All(_) if requests.iter().take(at).any(|other| intent.fits(scene, *other)) => break,
                Run::All(run) => run(scene, &same()),
                Run::List(noun, whose) => rules::list(scene, *clause, intent.tool, noun, whose),
            };
            if script == Err(Pause::Other) {
                continue;
            }
            found.push(script);
            match intent.run {
                Run::Rest(_) => return found,
                Run::One(_) | Run::All(_) | Run::List(..) => break,
            }
        }
    }
    if found.is_empty() {
        found.push(any_tool::run(scene));
    }
    found
}

/// What to say of a decision of the user.
fn decided(decided: &Decided) -> String {
    let what = format!("the {} {}", decided.what, say::bold(&decided.name));
    match decided.verdict {
        Verdict::Accept => {
            let id = decided.saved_id.as_deref().map(|id| format!(" (id {})", say::code(id))).unwrap_or_default();
            format!("You accepted the preview: {what} is saved{id}.")
        }
        Verdict::Reject => {
            let comment = decided.comment.as_deref().map(say::plain).filter(|comment| !comment.is_empty());
            let comment = comment.map(|comment| format!(" You said: \"{comment}\".")).unwrap_or_default();
            format!("You rejected the preview of {what}, so nothing was saved.{comment}")
        }
    }
}

/// An introduction: the demo model, what a user can ask for here, and how to connect a real model.
fn help(request: &ChatRequest<'_>) -> String {
    let is_offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    let known = INTENTS.iter().filter(|intent| !intent.example.is_empty() && is_offered(intent.tool));
    let mut lines: Vec<String> = known.map(|intent| format!("*{}*", intent.example)).collect();
    if lines.is_empty() {
        lines.extend(
            request.tools.iter().map(|tool| format!("{}: {}", say::code(&tool.name), say::sentence(&tool.description))),
        );
    }
    let what = match lines.is_empty() {
        true => "There is no tool on this screen that I could use.".to_owned(),
        false => format!("On this screen I understand\n\n{}", say::bullets(lines, 0)),
    };
    format!(
        "I am the built-in demo model: I follow simple rules. {what}\n\nFor everything else connect a real model: set \
         `SWITCHBOARD__LLM__PROVIDER` to `gemini`, `claude`, `openai`, `ollama`, `bedrock` or `vertex` and give its \
         key (`GEMINI_API_KEY`, `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `AWS_BEARER_TOKEN_BEDROCK`; Ollama needs none, \
         Vertex AI a project of Google Cloud), then restart the server."
    )
}
