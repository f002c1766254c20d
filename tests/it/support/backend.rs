//! A scripted backend: it behaves as a test says, which may change while requests come, counts what each idempotency key
//! asked for, and knows whose tokens it saw.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::upstream::{Answer, End, Request, Upstream};

/// What it does with a request.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Does it and says so.
    Good,
    /// The same, after a while.
    Slow(Duration),
    /// Answers with a status, a content type and a body.
    Says(u16, &'static str, Vec<u8>),
    /// Answers with a status, and says when to come again.
    Later(u16),
    /// Sends the client elsewhere.
    Redirects(String),
    /// A byte of JSON a second.
    Drips,
    /// JSON without end.
    Huge,
    /// A beginning, and then the connection breaks.
    Breaks,
    /// Takes the request and never answers.
    Silent,
}

/// A running backend.
pub struct ScriptedBackend {
    pub server: Upstream,
    behaviour: Arc<Mutex<Behaviour>>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    writes: BTreeMap<String, usize>,
    tokens: BTreeSet<String>,
}

impl ScriptedBackend {
    /// One that does everything.
    pub async fn start() -> Self {
        let (behaviour, seen) = (Arc::new(Mutex::new(Behaviour::Good)), Arc::<Mutex<Seen>>::default());
        let (now, notes) = (behaviour.clone(), seen.clone());
        let server = Upstream::choosing(move |request| {
            notes.lock().unwrap().note(request);
            Some(now.lock().unwrap().answer())
        });
        Self { server: server.await, behaviour, seen }
    }

    /// From now on it does this.
    pub fn be(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    /// How often each idempotency key came.
    pub fn writes(&self) -> BTreeMap<String, usize> {
        self.seen.lock().unwrap().writes.clone()
    }

    /// Whether a request came with this token.
    pub fn saw(&self, token: &str) -> bool {
        self.seen.lock().unwrap().tokens.contains(token)
    }
}

impl Seen {
    fn note(&mut self, request: &Request) {
        if let Some(key) = request.header("idempotency-key") {
            *self.writes.entry(key.to_owned()).or_default() += 1;
        }
        self.tokens
            .extend(request.header("authorization").and_then(|value| Some(value.strip_prefix("Bearer ")?.to_owned())));
    }
}

impl Behaviour {
    fn answer(&self) -> Answer {
        const JSON: &str = "application/json";
        match self {
            Self::Good => Answer::ok(JSON, r#"{"done": true}"#),
            Self::Slow(pause) => Answer::ok(JSON, "").later(*pause, r#"{"done": true}"#),
            Self::Says(status, kind, body) => Answer::status(*status, kind, body.clone()),
            Self::Later(status) => Answer::status(*status, "text/plain", "later").header("retry-after", "1"),
            Self::Redirects(to) => Answer::status(302, "text/html", "").header("location", to),
            Self::Drips => {
                let byte = |answer: Answer, _| answer.later(Duration::from_secs(1), " ");
                (0..600).fold(Answer::ok(JSON, "{"), byte)
            }
            Self::Huge => Answer::ok(JSON, "[").endless(vec![b'1'; 64 << 10]),
            Self::Breaks => Answer::ok(JSON, r#"{"done": "#).ending(End::Abort),
            Self::Silent => Answer::ok(JSON, "").ending(End::Hang),
        }
    }
}
