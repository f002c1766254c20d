//! Which call a delta belongs to. The protocol says by index; servers leave the index out, use 0 for every call, repeat
//! ids and names or leave them empty, so index and id are weighed together. State lives as long as the response: some
//! servers count anew in every chunk.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::chunk::CallDelta;
use crate::agent::ports::llm::ProviderError;
use crate::chat::message::Replay;
use crate::chat::stream::{CallSlot, ReplayOn, StreamEvent};
use crate::llm::answer::{malformed, read};

/// 10,000 calls in one answer, those without a name included, which no event tells of.
const MAX_CALLS: usize = 10_000;

/// The calls of one response so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// The newest call of each index.
    by_index: HashMap<i64, usize>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct Call {
    slot: CallSlot,
    index: Option<i64>,
    id: Option<String>,
    /// Once it is known the call has been announced.
    name: Option<String>,
    has_input: bool,
    /// Arguments that came as an object, or as `{}` before the true ones (envoyproxy/ai-gateway#1465); a stream of them, if any,
    /// says the same again or takes their place.
    whole_input: Option<String>,
    /// Arguments that came before the name.
    early_input: String,
    /// Opaque data that came before the name.
    early_replay: Option<Replay>,
}

impl Calls {
    /// Folds one delta; empty ids and names are as good as none.
    pub(super) fn push(&mut self, delta: CallDelta<'_>, events: &mut Vec<StreamEvent>) -> Result<(), ProviderError> {
        let id = delta.id.filter(|id| !id.is_empty());
        let (name, arguments) = match delta.function {
            Some(function) => (function.name.filter(|name| !name.is_empty()), function.arguments),
            None => (None, None),
        };
        let at = self.find(delta.index, id.as_deref(), name.as_deref());
        let at = at.map_or_else(|| self.add(delta.index), Ok)?;
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if let (Some(id), None) = (id, &call.id) {
            self.by_id.insert(id.clone(), at);
            call.id = Some(id);
        }
        call.push(name, arguments, delta.extra_content.map(|raw| Replay::new(raw.to_owned())), events)
    }

    /// The answer has ended well: adds the arguments that came as whole objects.
    pub(super) fn finish(&mut self, events: &mut Vec<StreamEvent>) {
        for call in self.calls.iter_mut().filter(|call| call.name.is_some()) {
            if let Some(json) = call.whole_input.take() {
                events.push(StreamEvent::ToolCallInput { slot: call.slot, json });
            }
        }
    }

    /// Whether a call has arguments but never got a name.
    pub(super) fn has_nameless(&self) -> bool {
        self.calls.iter().any(|call| call.name.is_none() && call.has_input)
    }

    fn find(&self, index: Option<i64>, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let with_index = index.and_then(|index| self.by_index.get(&index).copied());
        let found = match (index, id) {
            (_, Some(id)) => {
                let same_id = self.by_id.get(id).copied();
                let same_id = same_id.filter(|&at| index.is_none() || self.calls[at].index == index);
                // An id may come after its call has begun; another id at the same index is another call. LM Studio says a new
                // id in each piece without a name (hermes-agent#106943): those go on with the call that has one.
                let begun = with_index.or_else(|| self.newest(name).filter(|_| index.is_none()));
                let goes_on =
                    |call: &Call| call.id.is_none() || index.is_some() && name.is_none() && call.name.is_some();
                same_id.or_else(|| begun.filter(|&at| goes_on(&self.calls[at])))
            }
            (Some(_), None) => with_index,
            (None, None) => self.newest(name),
        };
        // Servers repeat a call's name; another one begins another call.
        found.filter(|&at| match (&self.calls[at].name, name) {
            (Some(known), Some(name)) => known == name,
            (None, _) | (_, None) => true,
        })
    }

    /// The last call, for a delta that does not say which; unless that one is whole and this one has a name.
    fn newest(&self, name: Option<&str>) -> Option<usize> {
        let last = self.calls.last()?;
        let is_next = name.is_some() && last.name.is_some() && last.has_input;
        (!is_next).then_some(self.calls.len() - 1)
    }

    fn add(&mut self, index: Option<i64>) -> Result<usize, ProviderError> {
        let at = self.calls.len();
        if at == MAX_CALLS {
            return Err(malformed(format!("the answer has more than {MAX_CALLS} calls")));
        }
        self.calls.push(Call {
            slot: CallSlot(u32::try_from(at).unwrap_or(u32::MAX)),
            index,
            id: None,
            name: None,
            has_input: false,
            whole_input: None,
            early_input: String::new(),
            early_replay: None,
        });
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        Ok(at)
    }
}

impl Call {
    fn push(
        &mut self,
        name: Option<String>,
        arguments: Option<&RawValue>,
        replay: Option<Replay>,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ProviderError> {
        match arguments {
            Some(text) if text.get().starts_with('"') => {
                let piece: String = read(text.get())?;
                if piece == "{}" && !self.has_input {
                    self.has_input = true;
                    self.whole_input = Some(piece);
                } else if !piece.trim().is_empty() || self.whole_input.is_none() {
                    self.has_input |= !piece.is_empty();
                    self.whole_input = None;
                    self.early_input.push_str(&piece);
                }
            }
            Some(whole) if !self.has_input || self.whole_input.is_some() => {
                self.has_input = true;
                self.whole_input = Some(whole.get().to_owned());
            }
            Some(_) | None => {}
        }
        self.early_replay = replay.or(self.early_replay.take());
        if let (Some(name), None) = (name, &self.name) {
            self.name = Some(name.clone());
            events.push(StreamEvent::ToolCallStarted { slot: self.slot, id: self.id.clone(), name });
        }
        if self.name.is_none() {
            return Ok(());
        }
        if !self.early_input.is_empty() {
            let json = std::mem::take(&mut self.early_input);
            events.push(StreamEvent::ToolCallInput { slot: self.slot, json });
        }
        if let Some(data) = self.early_replay.take() {
            events.push(StreamEvent::Replay { on: ReplayOn::ToolCall(self.slot), data });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls in `deltas`: slot, id, name and arguments of each.
    fn folded(deltas: &[&str]) -> Vec<(u32, Option<String>, String, String)> {
        let mut calls = Calls::default();
        let mut events = Vec::new();
        for delta in deltas {
            calls.push(serde_json::from_str(delta).unwrap(), &mut events).unwrap();
        }
        calls.finish(&mut events);
        let mut folded: Vec<(u32, Option<String>, String, String)> = Vec::new();
        for event in events {
            match event {
                StreamEvent::ToolCallStarted { slot, id, name } => folded.push((slot.0, id, name, String::new())),
                StreamEvent::ToolCallInput { slot, json } => {
                    folded.iter_mut().find(|call| call.0 == slot.0).unwrap().3.push_str(&json);
                }
                other => panic!("{other:?}"),
            }
        }
        folded
    }

    #[test]
    fn deltas_find_their_call_whatever_the_server_leaves_out() {
        let one = |slot, id: &str, name: &str, json: &str| {
            (slot, (!id.is_empty()).then(|| id.to_owned()), name.to_owned(), json.to_owned())
        };
        let table: [(&str, &[&str], Vec<_>); 14] = [
            (
                "interleaved, sparse indexes",
                &[
                    r#"{"index":3,"id":"a","function":{"name":"f","arguments":""}}"#,
                    r#"{"index":9,"id":"b","function":{"name":"g","arguments":"{"}}"#,
                    r#"{"index":3,"function":{"arguments":"1"}}"#,
                    r#"{"index":9,"id":"","function":{"name":"","arguments":"}"}}"#,
                ],
                vec![one(0, "a", "f", "1"), one(1, "b", "g", "{}")],
            ),
            (
                "index 0 for all",
                &[
                    r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#,
                    r#"{"index":0,"id":"b","function":{"name":"f","arguments":"2"}}"#,
                    r#"{"index":0,"function":{"arguments":"3"}}"#,
                ],
                vec![one(0, "a", "f", "1"), one(1, "b", "f", "23")],
            ),
            (
                "the same id at two indexes",
                &[
                    r#"{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}"#,
                    r#"{"index":1,"id":"a","function":{"name":"f","arguments":"2"}}"#,
                ],
                vec![one(0, "a", "f", "1"), one(1, "a", "f", "2")],
            ),
            (
                "the name after the id and the first arguments",
                &[r#"{"index":0,"id":"a","function":{"arguments":"1"}}"#, r#"{"index":0,"function":{"name":"f"}}"#],
                vec![one(0, "a", "f", "1")],
            ),
            (
                "neither index nor id, whole calls",
                &[r#"{"function":{"name":"f","arguments":{"x":1}}}"#, r#"{"function":{"name":"f","arguments":null}}"#],
                vec![one(0, "", "f", r#"{"x":1}"#), one(1, "", "f", "")],
            ),
            (
                "index 0 for all, no ids, whole calls",
                &[
                    r#"{"index":0,"function":{"name":"f","arguments":"1"}}"#,
                    r#"{"index":0,"function":{"name":"g","arguments":"2"}}"#,
                ],
                vec![one(0, "", "f", "1"), one(1, "", "g", "2")],
            ),
            (
                "llama-cpp-python: the name in every delta",
                &[
                    r#"{"index":0,"function":{"name":"f","arguments":"1"}}"#,
                    r#"{"index":0,"function":{"name":"f","arguments":"2"}}"#,
                ],
                vec![one(0, "", "f", "12")],
            ),
            (
                "no index, the id behind the name",
                &[r#"{"function":{"name":"f"}}"#, r#"{"id":"a","function":{"arguments":"1"}}"#],
                vec![one(0, "", "f", "1")],
            ),
            (
                "an object, then the stream of it",
                &[
                    r#"{"index":0,"id":"a","function":{"name":"f","arguments":{}}}"#,
                    r#"{"index":0,"function":{"arguments":""}}"#,
                    r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
                    r#"{"index":0,"function":{"arguments":":1}"}}"#,
                ],
                vec![one(0, "a", "f", r#"{"x":1}"#)],
            ),
            (
                "an index in quotes, an id that is a number",
                &[
                    r#"{"index":"1","id":7,"function":{"name":"f","arguments":"1"}}"#,
                    r#"{"index":1,"id":"8","function":{"name":"f","arguments":"2"}}"#,
                    r#"{"index":{},"id":true}"#,
                ],
                vec![one(0, "7", "f", "1"), one(1, "8", "f", "2")],
            ),
            (
                "LM Studio: a new id in each piece without a name",
                &[
                    r#"{"index":0,"id":"583911274","function":{"name":"f","arguments":""}}"#,
                    r#"{"index":0,"id":"700000001","function":{"name":"","arguments":"{"}}"#,
                    r#"{"index":0,"id":"700000002","function":{"name":"","arguments":"}"}}"#,
                    r#"{"index":0,"id":"583911275","function":{"name":"f","arguments":"2"}}"#,
                ],
                vec![one(0, "583911274", "f", "{}"), one(1, "583911275", "f", "2")],
            ),
            (
                "nothing, and then the arguments",
                &[
                    r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
                    r#"{"index":0,"function":{"arguments":""}}"#,
                    r#"{"index":0,"function":{"arguments":"{\"x\":"}}"#,
                    r#"{"index":0,"function":{"arguments":" 1}"}}"#,
                ],
                vec![one(0, "a", "f", r#"{"x": 1}"#)],
            ),
            (
                "nothing at all in a call",
                &[
                    r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
                    r#"{"index":0,"function":{"arguments":"\n"}}"#,
                ],
                vec![one(0, "a", "f", "{}")],
            ),
            ("nothing at all", &["{}", r#"{"index":0,"id":null,"function":null}"#], vec![]),
        ];
        for (why, deltas, expected) in table {
            assert_eq!(folded(deltas), expected, "{why}");
        }
    }
}
