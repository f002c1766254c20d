//! The events of a Responses stream, folded. What belongs together is known by its item; an item's end repeats it whole, and
//! the last word about a call's arguments counts, so these are told at the item's end. `response.completed`,
//! `response.incomplete` or `response.failed` ends the answer.

use serde_json::value::RawValue;

use super::event::{Event, Item, Part, Place, Response, Usage};
use super::items::{CALL, Call, Items, Kind, MESSAGE, REASONING, Told};
use super::reasoning::{self, Kept};
use crate::agent::ports::llm::{ProviderError, ProviderErrorKind};
use crate::bounded::json::parse;
use crate::chat::stream::{self, FinishReason, ReplayOn, StreamEvent};
use crate::llm::answer::{self, Flow, arguments_text, malformed, read};
use crate::llm::failure::{self, ErrorField};
use crate::llm::few::Few;

/// An answer so far.
#[derive(Debug, Default)]
pub(super) struct Fold {
    /// The response's id, as the JSON has it.
    id: Option<Box<str>>,
    items: Items,
    usage: Option<Usage>,
}

impl answer::Fold for Fold {
    fn push(&mut self, frame: &str, events: &mut Vec<StreamEvent>) -> Result<Flow, ProviderError> {
        if frame.trim() == "[DONE]" {
            // Nothing is read behind a good end, so there was none.
            return Err(answer::truncated());
        }
        let mut event: Event<'_> = read(frame)?;
        if let Some(error) = event.error.take() {
            return Err(error.into_error());
        }
        match event.kind() {
            "response.output_text.delta" => self.say(event.place(), event.delta, events)?,
            "response.refusal.delta" => self.say(event.place(), event.delta, events)?,
            "response.output_text.done" => self.say_once(event.place(), event.text, events)?,
            "response.refusal.done" => self.say_once(event.place(), event.refusal, events)?,
            "response.reasoning_summary_text.delta" => self.think(&event, Told::Summary, events)?,
            "response.reasoning_text.delta" => self.think(&event, Told::Text, events)?,
            "response.function_call_arguments.delta" => self.argue(event.place(), event.delta, events)?,
            "response.function_call_arguments.done" => self.argue_whole(event.place(), event.arguments)?,
            "response.output_item.added" => self.begin(&event, events)?,
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.end(read(item.get())?, event.place().index, events)?;
                }
            }
            "response.created" => self.know(event.response)?,
            kind @ ("response.completed" | "response.incomplete" | "response.failed" | "response.cancelled") => {
                let response = event.response.map(|raw| read(raw.get())).transpose()?.unwrap_or_default();
                return self.finished(kind, response, events);
            }
            // An error that is not in a field of its own.
            "error" => return Err(read::<ErrorField>(frame)?.into_error()),
            // Parts and their ends, which the items say too; pings; tools of the server; kinds that do not exist yet.
            _ => {}
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, tail: &str, _events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        Err(failure::error_in(tail).unwrap_or_else(answer::truncated))
    }
}

impl Fold {
    fn know(&mut self, response: Option<&RawValue>) -> Result<(), ProviderError> {
        let response: Response<'_> = response.map(|raw| read(raw.get())).transpose()?.unwrap_or_default();
        let Some(id) = response.id else { return Ok(()) };
        match self.id.as_deref() {
            Some(known) if known != id.get() => Err(malformed("a second response began inside the first")),
            Some(_) => Ok(()),
            None => {
                self.id = Some(id.get().into());
                Ok(())
            }
        }
    }

    fn say(
        &mut self,
        place: Place<'_>,
        delta: Option<&RawValue>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let text = text(delta)?;
        if text.is_empty() {
            return Ok(());
        }
        if let Kind::Message { has_text } = &mut self.items.at(place, MESSAGE)?.kind {
            *has_text = true;
        }
        events.push(StreamEvent::Text(text));
        Ok(())
    }

    /// Says a whole text, unless it came in pieces.
    fn say_once(
        &mut self,
        place: Place<'_>,
        whole: Option<&RawValue>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        match self.items.at(place, MESSAGE)?.kind {
            Kind::Message { has_text: true } => Ok(()),
            Kind::Message { .. } | Kind::Reasoning { .. } | Kind::Call(_) | Kind::Other => {
                self.say(place, whole, events)
            }
        }
    }

    fn think(&mut self, event: &Event<'_>, of: Told, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let delta = text(event.delta)?;
        if delta.is_empty() {
            return Ok(());
        }
        let part = event.part();
        if let Kind::Reasoning { told } = &mut self.items.at(event.place(), REASONING)?.kind {
            match *told {
                // The other one says the same.
                Some((before, _)) if before != of => return Ok(()),
                Some((_, before)) if before != part => events.push(StreamEvent::Thinking(format!("\n\n{delta}"))),
                Some(_) | None => events.push(StreamEvent::Thinking(delta)),
            }
            *told = Some((of, part));
        }
        Ok(())
    }

    fn argue(
        &mut self,
        place: Place<'_>,
        delta: Option<&RawValue>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let delta = text(delta)?;
        let item = self.items.at(place, CALL)?;
        if let Kind::Call(call) = &mut item.kind
            && !item.is_done
        {
            if std::mem::take(&mut call.is_repeated) {
                call.arguments.clear();
            }
            call.arguments.push_str(&delta);
            if call.is_announced {
                // That it goes on; the arguments themselves are told when they are whole.
                events.push(StreamEvent::ToolCallInput { slot: call.slot, json: String::new() });
            }
        }
        Ok(())
    }

    fn argue_whole(&mut self, place: Place<'_>, arguments: Option<&RawValue>) -> Result<(), ProviderError> {
        let item = self.items.at(place, CALL)?;
        if let Kind::Call(call) = &mut item.kind
            && !item.is_done
        {
            call.take_whole(arguments)?;
        }
        Ok(())
    }

    fn begin(&mut self, event: &Event<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let Some(item) = event.item else { return Ok(()) };
        let mut item: Item<'_> = read(item.get())?;
        let begun = self.items.begin(item.place(event.place().index), item.kind())?;
        if let Kind::Call(call) = &mut begun.kind
            && !begun.is_done
        {
            call.announce(&mut item, events);
            call.take_whole(item.arguments)?;
            call.is_repeated = true;
        }
        Ok(())
    }

    /// The whole item has come, at the place `index` of the output.
    fn end(
        &mut self,
        mut item: Item<'_>,
        index: Option<i64>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        let known = self.items.at(item.place(index), item.kind())?;
        if std::mem::replace(&mut known.is_done, true) {
            return Ok(());
        }
        match &mut known.kind {
            Kind::Message { has_text } => {
                if !*has_text {
                    for part in parts(item.content) {
                        let texts = [part.text, part.refusal].into_iter().flatten().filter(|text| !text.is_empty());
                        events.extend(texts.inspect(|_| *has_text = true).map(StreamEvent::Text));
                    }
                }
                if let Some(phase) = item.phase.filter(|phase| *has_text && phase.get().starts_with('"')) {
                    events.push(StreamEvent::Replay { on: ReplayOn::Text, data: Kept::Phase(phase).to_replay()? });
                }
            }
            Kind::Reasoning { told } => {
                if told.is_none() {
                    let texts =
                        |list| parts(list).into_iter().filter_map(|part| part.text).collect::<Vec<_>>().join("\n\n");
                    let summary = texts(item.summary);
                    let text = if summary.is_empty() { texts(item.content) } else { summary };
                    events.extend((!text.is_empty()).then_some(StreamEvent::Thinking(text)));
                }
                if let Some(data) = reasoning::to_replay(&item)? {
                    events.push(StreamEvent::Replay { on: ReplayOn::Thinking, data });
                }
            }
            Kind::Call(call) => {
                call.announce(&mut item, events);
                call.take_whole(item.arguments)?;
                call.tell(events);
            }
            Kind::Other => {}
        }
        Ok(())
    }

    /// The response has ended, as the event called `kind` says.
    fn finished(
        &mut self,
        kind: &str,
        mut response: Response<'_>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<Flow, ProviderError> {
        self.usage = response.usage.or(self.usage);
        let status = match response.status() {
            status @ ("failed" | "cancelled" | "incomplete") => status,
            _ => kind.trim_start_matches("response."),
        };
        let reason = match (status, response.incomplete_reason()) {
            ("failed" | "cancelled", _) => {
                events.extend(self.counts().map(StreamEvent::Used));
                return Err(match response.error.take() {
                    Some(error) => error.into_error(),
                    None => {
                        let kind = ProviderErrorKind::Unavailable { retry_after: None };
                        ProviderError::new(kind, format!("the response is {status}"))
                    }
                });
            }
            (_, Some("max_output_tokens")) => FinishReason::Length,
            (_, Some("content_filter")) => FinishReason::ContentFilter,
            ("incomplete", reason) => {
                let detail = format!("the response is incomplete: {}", reason.unwrap_or("no reason is given"));
                return Err(ProviderError::new(ProviderErrorKind::Truncated, detail));
            }
            (_, _) => FinishReason::Stop,
        };
        if self.items.is_empty() {
            // A gateway that streams nothing has it all here.
            let output = response.output.map(|raw| read::<Few<Item<'_>>>(raw.get())).transpose()?.unwrap_or_default();
            for (index, item) in (0_i64..).zip(output) {
                self.end(item, Some(index), events)?;
            }
        }
        for item in self.items.iter_mut() {
            match &mut item.kind {
                Kind::Call(call) if !call.is_announced && reason == FinishReason::Stop => {
                    return Err(ProviderError::new(ProviderErrorKind::ModelFault, "a tool call without a name"));
                }
                // Its end may not have come.
                Kind::Call(call) => call.tell(events),
                Kind::Message { .. } | Kind::Reasoning { .. } | Kind::Other => {}
            }
        }
        events.push(StreamEvent::Finished { reason, usage: self.counts() });
        Ok(Flow::Done)
    }

    fn counts(&self) -> Option<stream::Usage> {
        let usage = self.usage?;
        if usage.input_tokens.is_none() && usage.output_tokens.is_none() {
            return None;
        }
        Some(stream::Usage {
            input_tokens: usage.input_tokens.unwrap_or(0),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cached_input_tokens: usage.input_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
            reasoning_tokens: usage.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        })
    }
}

impl Call {
    /// Tells of the call as soon as its name is known.
    fn announce(&mut self, item: &mut Item<'_>, events: &mut Vec<StreamEvent>) {
        self.id = self.id.take().or_else(|| item.take_call_id());
        if let Some(name) = item.take_name().filter(|_| !self.is_announced) {
            self.is_announced = true;
            events.push(StreamEvent::ToolCallStarted { slot: self.slot, id: self.id.clone(), name });
        }
    }

    /// Takes arguments that came whole in the place of what has come.
    fn take_whole(&mut self, arguments: Option<&RawValue>) -> Result<(), ProviderError> {
        let whole = arguments.map(arguments_text).transpose()?.filter(|whole| !whole.is_empty());
        self.arguments = whole.unwrap_or_else(|| std::mem::take(&mut self.arguments));
        Ok(())
    }

    /// Tells the arguments, which are whole now.
    fn tell(&mut self, events: &mut Vec<StreamEvent>) {
        let json = std::mem::take(&mut self.arguments);
        if self.is_announced && !json.is_empty() {
            events.push(StreamEvent::ToolCallInput { slot: self.slot, json });
        }
    }
}

/// The text that a field has; empty where it has none.
fn text(raw: Option<&RawValue>) -> Result<String, ProviderError> {
    raw.filter(|raw| raw.get().starts_with('"')).map_or_else(|| Ok(String::new()), |raw| read(raw.get()))
}

/// The parts in a list; none where it is none.
fn parts(list: Option<&RawValue>) -> Few<Part> {
    list.and_then(|raw| parse(raw.get()).ok()).unwrap_or_default()
}
