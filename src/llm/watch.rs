//! A model's answer under watch: the clock that pings do not reset, the breaker that wants to know how it ended, and the
//! names that every error must carry into the log.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tokio::time::{Instant, Sleep, sleep_until};

use super::breaker::Permit;
use super::http::Patience;
use crate::agent::ports::llm::{EventStream, ProviderError, ProviderErrorKind};
use crate::chat::message::ModelOrigin;
use crate::chat::stream::{StreamEvent, Usage};
use crate::observe::metrics::{ModelCall, Outcome};
use crate::observe::{names, spans};

/// A whole day stands for no limit.
const NO_LIMIT: Duration = Duration::from_secs(86_400);

/// An answer while it comes.
pub(super) struct Watched {
    origin: Arc<ModelOrigin>,
    request_id: Option<String>,
    events: BoxStream<'static, Result<StreamEvent, ProviderError>>,
    /// Read before the first token was there, not yet taken.
    early: VecDeque<StreamEvent>,
    /// `None` once the answer has ended, well or badly.
    permit: Option<Permit>,
    call: ModelCall,
    /// Between two pieces of the answer.
    progress: Duration,
    /// When the next piece must be there.
    deadline: Instant,
    /// Not set anew for every piece: when it rings, it looks whether the time is really up.
    alarm: Pin<Box<Sleep>>,
}

impl Watched {
    /// Watches `answer`, for which a permit was given; `call` measures it from its request on.
    pub(super) fn new(answer: EventStream, (permit, call): (Permit, ModelCall), patience: Patience) -> Self {
        let EventStream { origin, request_id, events } = answer;
        let progress = patience.progress.unwrap_or(NO_LIMIT);
        // Until the first piece a local server may still be loading its model, headers sent or not.
        let first = patience
            .progress
            .map_or(NO_LIMIT, |progress| patience.first_byte.map_or(NO_LIMIT, |first_byte| first_byte.max(progress)));
        let deadline = Instant::now() + first.min(NO_LIMIT);
        Self {
            origin,
            request_id,
            events,
            early: VecDeque::new(),
            permit: Some(permit),
            call,
            progress: progress.min(NO_LIMIT),
            deadline,
            alarm: Box::pin(sleep_until(deadline)),
        }
    }

    /// Waits for the first token: until then nothing has reached the user, and another call may replace this one.
    ///
    /// # Errors
    /// When the answer failed before it.
    pub(super) async fn first_token(&mut self) -> Result<(), ProviderError> {
        while let Some(event) = poll_fn(|cx| self.poll_read(cx)).await {
            let event = event?;
            let is_token = match &event {
                StreamEvent::Text(text) | StreamEvent::Thinking(text) => !text.is_empty(),
                StreamEvent::ToolCallStarted { .. } | StreamEvent::Finished { .. } => true,
                StreamEvent::ToolCallInput { .. } | StreamEvent::Replay { .. } | StreamEvent::Used(_) => false,
            };
            self.early.push_back(event);
            if is_token {
                if let Some(permit) = &mut self.permit {
                    permit.answering();
                }
                let after = self.call.first_token();
                spans::tell_current(names::TIME_TO_FIRST_CHUNK, || after.as_secs_f64());
                return Ok(());
            }
        }
        Err(self.failed(ProviderError::new(ProviderErrorKind::Truncated, "the stream ended without an event")))
    }

    /// The answer, with what was read of it already.
    pub(super) fn into_stream(self) -> EventStream {
        let (origin, request_id) = (Arc::clone(&self.origin), self.request_id.clone());
        EventStream { origin, request_id, events: self.boxed() }
    }

    /// The next piece of the answer; `None` after its end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, ProviderError>>> {
        if self.permit.is_none() {
            return Poll::Ready(None);
        }
        Poll::Ready(match ready!(self.poll_in_time(cx)) {
            // Counts alone are no progress.
            Some(Ok(StreamEvent::Used(usage))) => Some(Ok(StreamEvent::Used(usage.believable()))),
            Some(Ok(mut event)) => {
                self.deadline = Instant::now() + self.progress;
                if let StreamEvent::Finished { usage, .. } = &mut event
                    && let Some(permit) = self.permit.take()
                {
                    *usage = usage.map(Usage::believable);
                    permit.answered();
                    self.call.used(kinds(usage.unwrap_or_default()));
                    self.call.ended(Outcome::OK);
                }
                Some(Ok(event))
            }
            Some(Err(error)) => Some(Err(self.failed(error))),
            None => {
                self.permit = None;
                self.call.ended(Outcome::failed(ProviderErrorKind::Truncated.code().name()));
                None
            }
        })
    }

    fn poll_in_time(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<StreamEvent, ProviderError>>> {
        let Self { events, alarm, deadline, .. } = self;
        // The first piece may have had longer than any later one has.
        if *deadline < alarm.deadline() {
            alarm.as_mut().reset(*deadline);
        }
        if let Poll::Ready(next) = events.poll_next_unpin(cx) {
            return Poll::Ready(next);
        }
        loop {
            ready!(alarm.as_mut().poll(cx));
            if Instant::now() >= *deadline {
                let detail = "nothing of the answer came in time, though the connection was alive";
                return Poll::Ready(Some(Err(ProviderError::new(ProviderErrorKind::TimedOut, detail))));
            }
            alarm.as_mut().reset(*deadline);
        }
    }

    fn failed(&mut self, error: ProviderError) -> ProviderError {
        self.call.ended(Outcome::failed(error.kind.code().name()));
        if let Some(permit) = self.permit.take() {
            settle(permit, error.kind);
        }
        let request_id = error.request_id.or_else(|| self.request_id.clone());
        ProviderError { origin: Some(Arc::clone(&self.origin)), request_id, ..error }
    }
}

impl Stream for Watched {
    type Item = Result<StreamEvent, ProviderError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.early.pop_front() {
            Some(event) => Poll::Ready(Some(Ok(event))),
            None => self.poll_read(cx),
        }
    }
}

/// Tokens by what they were for; the cached are among the input, the reasoning among the output.
fn kinds(usage: Usage) -> [(&'static str, u64); 4] {
    let Usage { input_tokens, output_tokens, cached_input_tokens, reasoning_tokens } = usage;
    [
        ("input", input_tokens),
        ("cached_input", cached_input_tokens),
        ("output", output_tokens),
        ("reasoning", reasoning_tokens),
    ]
}

/// Tells the breaker of a call that failed as `kind`.
pub(super) fn settle(mut permit: Permit, kind: ProviderErrorKind) {
    match speaks_against(kind) {
        true => permit.failed(Instant::now(), kind),
        // Whoever refuses a question is there.
        false => permit.answering(),
    }
}

/// Whether a failure is the model's or its server's own, so that other calls would meet it too.
fn speaks_against(kind: ProviderErrorKind) -> bool {
    match kind {
        ProviderErrorKind::Unauthorized
        | ProviderErrorKind::ModelNotFound
        | ProviderErrorKind::QuotaExceeded
        | ProviderErrorKind::RateLimited { .. }
        | ProviderErrorKind::Unavailable { .. }
        | ProviderErrorKind::TimedOut
        | ProviderErrorKind::Truncated
        | ProviderErrorKind::Malformed => true,
        ProviderErrorKind::ContextTooLong
        | ProviderErrorKind::ContentFiltered
        | ProviderErrorKind::Rejected
        | ProviderErrorKind::ModelFault
        | ProviderErrorKind::Paused => false,
    }
}
