//! The spans of a task that does one thing inside another. Instrumented futures that are nested enter all of their spans
//! anew with every wake, and a streaming run wakes for every chunk of its model; here a wake enters the innermost one alone.
//! The ones above it are found by its parents, as every reader of spans does it.
//!
//! **Invariant:** works inside each other, never beside each other: what runs at the same time in one task, such as several
//! tools, has spans by `Instrument`.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::Span;

thread_local! {
    /// The spans of the task that this thread drives at the moment, the innermost last, and it alone entered; `None` outside
    /// of any [`Outermost`].
    static DRIVEN: RefCell<Option<Vec<Span>>> = const { RefCell::new(None) };
}

/// The whole work of a task, in a span of its own.
pub fn outermost<F: Future>(span: Span, work: F) -> Outermost<F> {
    Outermost { work, spans: vec![span] }
}

/// A part of a task's work, in a span of its own.
pub fn within<F: Future>(span: Span, work: F) -> Within<F> {
    Within { work, span, stands: Stands::Before }
}

pin_project! {
    /// See [`outermost`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Outermost<F> {
        #[pin]
        work: F,
        spans: Vec<Span>,
    }
}

impl<F: Future> Future for Outermost<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _driving = Driving::begin(this.spans);
        this.work.poll(cx)
    }
}

/// A task is being driven, until this is dropped, by a panic too.
struct Driving<'a> {
    spans: &'a mut Vec<Span>,
    /// Of the task that drives this one, if any does.
    before: Option<Vec<Span>>,
}

impl<'a> Driving<'a> {
    fn begin(spans: &'a mut Vec<Span>) -> Self {
        let own = std::mem::take(spans);
        enter(own.last());
        let before = DRIVEN.replace(Some(own));
        Self { spans, before }
    }
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        let own = DRIVEN.replace(self.before.take()).unwrap_or_default();
        exit(own.last());
        *self.spans = own;
    }
}

/// Whether a span is among those of its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    Before,
    /// It is, and its work has not ended.
    Inside,
    /// There is no [`Outermost`]: it is entered and left like any other.
    Alone,
    After,
}

pin_project! {
    /// See [`within`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Within<F> {
        #[pin]
        work: F,
        span: Span,
        stands: Stands,
    }

    impl<F> PinnedDrop for Within<F> {
        fn drop(this: Pin<&mut Self>) {
            // Whoever drops it goes on in the span above.
            if *this.project().stands == Stands::Inside {
                leave();
            }
        }
    }
}

impl<F: Future> Future for Within<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if *this.stands == Stands::Before {
            *this.stands = if go_into(this.span) { Stands::Inside } else { Stands::Alone };
        }
        if *this.stands != Stands::Inside {
            let _entered = this.span.enter();
            return this.work.poll(cx);
        }
        let polled = this.work.poll(cx);
        if polled.is_ready() {
            *this.stands = Stands::After;
            leave();
        }
        polled
    }
}

/// Makes `span` the innermost one; `false` where there is no task to do so in.
fn go_into(span: &Span) -> bool {
    DRIVEN.with_borrow_mut(|driven| {
        let Some(spans) = driven else { return false };
        // One that is filtered out stands for the one above it, so that what is below that still is.
        let inner = if span.is_disabled() { spans.last().cloned() } else { None };
        let inner = inner.unwrap_or_else(|| span.clone());
        exit(spans.last());
        enter(Some(&inner));
        spans.push(inner);
        true
    })
}

/// Goes back to the span above the innermost one. Does nothing where the whole task is dropped and not polled again.
fn leave() {
    // Dropped when the list is free again: its end may be exported.
    let _left = DRIVEN.with_borrow_mut(|driven| {
        let spans = driven.as_mut()?;
        let left = spans.pop();
        exit(left.as_ref());
        enter(spans.last());
        left
    });
}

fn enter(span: Option<&Span>) {
    span.and_then(|span| span.with_subscriber(|(id, subscriber)| subscriber.enter(id)));
}

fn exit(span: Option<&Span>) {
    span.and_then(|span| span.with_subscriber(|(id, subscriber)| subscriber.exit(id)));
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::{Arc, Mutex};

    use futures::FutureExt;
    use tokio::task::yield_now;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber, info_span};

    use super::*;

    /// Notes what is entered and left, by the spans' names.
    #[derive(Default)]
    struct Notes {
        names: Mutex<Vec<&'static str>>,
        seen: Arc<Mutex<Vec<String>>>,
    }

    impl Notes {
        fn note(&self, sign: char, id: &Id) {
            let name = self.names.lock().unwrap()[usize::try_from(id.into_u64()).unwrap() - 1];
            self.seen.lock().unwrap().push(format!("{sign}{name}"));
        }
    }

    impl Subscriber for Notes {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut names = self.names.lock().unwrap();
            names.push(span.metadata().name());
            Id::from_u64(names.len() as u64)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, id: &Id) {
            self.note('+', id);
        }

        fn exit(&self, id: &Id) {
            self.note('-', id);
        }
    }

    /// What is entered and left while `work` is driven to its end.
    fn seen<F: Future>(work: impl FnOnce() -> F) -> String {
        let notes = Notes::default();
        let seen = notes.seen.clone();
        let _default = tracing::subscriber::set_default(notes);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(work());
        drop(runtime);
        let seen = seen.lock().unwrap();
        seen.join(" ")
    }

    #[test]
    fn a_wake_enters_the_innermost_span_alone() {
        let seen = seen(|| {
            let inner = async {
                yield_now().await;
                yield_now().await;
            };
            let outer = async {
                yield_now().await;
                within(info_span!("inner"), inner).await;
                yield_now().await;
            };
            outermost(info_span!("outer"), outer)
        });
        assert_eq!(
            seen,
            "+outer -outer +outer -outer +inner -inner +inner -inner +inner -inner +outer -outer +outer -outer"
        );
    }

    #[test]
    fn what_gives_its_work_up_goes_on_in_its_own_span() {
        let seen = seen(|| {
            let deep = within(info_span!("deep"), std::future::pending::<()>());
            let mid = within(info_span!("mid"), deep);
            let outer = async {
                tokio::select! {
                    biased;
                    () = mid => {}
                    () = yield_now() => {}
                }
                yield_now().await;
            };
            outermost(info_span!("outer"), outer)
        });
        assert_eq!(seen, "+outer -outer +mid -mid +deep -deep +deep -deep +mid -mid +outer -outer +outer -outer");
    }

    #[test]
    fn a_panic_leaves_the_spans_that_it_goes_through() {
        let seen = seen(|| {
            let inner = async {
                yield_now().await;
                std::panic::resume_unwind(Box::new("on purpose"));
            };
            let outer = async {
                let caught = AssertUnwindSafe(within(info_span!("inner"), inner)).catch_unwind().await;
                assert!(caught.is_err());
                yield_now().await;
            };
            outermost(info_span!("outer"), outer)
        });
        assert!(seen.starts_with("+outer -outer +inner -inner +inner"), "{seen}");
        assert!(seen.ends_with("-inner +outer -outer +outer -outer"), "{seen}");
    }

    #[test]
    fn work_of_no_task_has_its_spans_like_any_other() {
        let seen = seen(|| within(info_span!("outer"), within(info_span!("inner"), yield_now())));
        assert_eq!(seen, "+outer +inner -inner -outer +outer +inner -inner -outer");
    }

    #[test]
    fn a_task_that_is_dropped_halfway_leaves_nothing_entered() {
        let seen = seen(|| async {
            let inner = within(info_span!("inner"), std::future::pending::<()>());
            let mut task = Box::pin(outermost(info_span!("outer"), inner));
            assert!(futures::poll!(task.as_mut()).is_pending());
            drop(task);
        });
        assert_eq!(seen, "+outer -outer +inner -inner");
    }
}
