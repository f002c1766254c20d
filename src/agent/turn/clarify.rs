//! Questions before the first turn, where it is not clear enough what the user wants.

use std::sync::Arc;

use super::context::{Ended, Role, Turns};
use super::state::{Times, Transcript};
use crate::agent::clarify::{INSTRUCTIONS, kept};
use crate::chat::clarification::{Clarification, Questions};
use crate::chat::event::AgentEvent;
use crate::chat::message::{AssistantMessage, AssistantPart, Message, ModelOrigin};
use crate::chat::model::Helper;
use crate::chat::state::StateEvent;

impl Turns<'_> {
    /// Asks the user first where the profile wants that and too little was said; whether it has. The questions are this
    /// run's answer then.
    pub(super) async fn clarify(&self, transcript: &mut Transcript) -> Result<bool, Ended> {
        let (Some(gate), Role::Answers) = (&self.profile.clarify, self.role) else { return Ok(false) };
        if self.terms.are_bound() {
            // Nobody would read the questions.
            return Ok(false);
        }
        let Some(message) = transcript.messages.unanswered() else { return Ok(false) };
        let mut so_far = transcript.about.clarification().cloned().unwrap_or_default();
        if so_far.is_over || so_far.rounds >= gate.rounds {
            return Ok(false);
        }
        so_far.said.push(kept(&message));
        let score = gate.score(&so_far.said.join("\n"));
        if score.is_sure() {
            return Ok(go_on(so_far, transcript));
        }
        let since_ms = self.now_ms();
        let questions = match &self.agent.helpers.clarify {
            Helper::Off if score.is_enough() => return Ok(go_on(so_far, transcript)),
            Helper::Off => None,
            helper => {
                let answer = self.ask_first(helper, INSTRUCTIONS, gate.request(&so_far), transcript).await?;
                match answer.ok().and_then(|answer| gate.read(&answer)) {
                    Some(questions) if questions.is_empty() => return Ok(go_on(so_far, transcript)),
                    None if score.is_likely() => return Ok(go_on(so_far, transcript)),
                    questions => questions,
                }
            }
        };
        let questions = questions.unwrap_or_else(|| vec![gate.question.clone()]);
        so_far.rounds += 1;
        so_far.asked.extend(questions.iter().cloned());
        self.ask_user(Questions { introduction: gate.introduction.clone(), questions }, so_far, since_ms, transcript);
        self.end_speech(transcript).await;
        Ok(true)
    }

    /// The questions are the answer of a turn that no model has spoken.
    fn ask_user(&self, questions: Questions, so_far: Clarification, since_ms: i64, transcript: &mut Transcript) {
        let text = questions.text();
        self.emit(AgentEvent::TurnStarted { turn: transcript.turn() });
        self.emit(AgentEvent::State(Box::new(StateEvent::Asked(questions))));
        self.say(transcript, text.clone());
        let origin = Arc::new(ModelOrigin { provider: "switchboard".to_owned(), model: "clarify".to_owned() });
        let message = AssistantMessage { origin, parts: vec![AssistantPart::Text { text, replay: None }] };
        transcript.note_turn(Some(&message), "stop", None, Times { since_ms, now_ms: self.now_ms() });
        transcript.end_turn();
        transcript.messages.push(Message::Assistant(message));
        transcript.about.ask(so_far);
    }
}

/// Enough was said: what the user answers to the assistant's own questions later is asked about no more.
fn go_on(so_far: Clarification, transcript: &mut Transcript) -> bool {
    transcript.about.know(Clarification { is_over: true, ..so_far });
    false
}
