//! The models that a profile offers: the default choice, and how far a request may depart from it.

use crate::chat::message::ModelOrigin;
use crate::chat::model::{ModelChoice, ModelWish};

/// A profile's models.
#[derive(Debug, Clone, PartialEq)]
pub struct Menu {
    /// The default, where a request wishes nothing.
    pub choice: ModelChoice,
    /// The models that a request may name.
    pub offered: Vec<Offer>,
    /// Whether a request may set the temperature.
    pub temperature: bool,
    /// Whether a request may set the effort.
    pub effort: bool,
    /// Whether a request may lower the length of its answers.
    pub max_tokens: bool,
}

/// A model that a request may name.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The name in requests.
    pub name: String,
    /// The models that answer then, in order of trying.
    pub models: Vec<ModelOrigin>,
}

/// A wish that a profile does not grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOffered {
    /// The model is not on the menu.
    #[error("must be one of: {}", .0.join(", "))]
    Model(Vec<String>),
    /// No model can be chosen.
    #[error("cannot be chosen for this context_type")]
    AnyModel,
    /// The temperature is the profile's.
    #[error("cannot be set for this context_type")]
    Temperature,
    /// The effort is the profile's.
    #[error("cannot be set for this context_type")]
    Effort,
    /// The length of answers is the profile's.
    #[error("cannot be set for this context_type")]
    MaxTokens,
    /// The wish is above the profile's own limit.
    #[error("must be at most {0}")]
    MaxTokensAbove(u32),
}

impl NotOffered {
    /// The field of a request that has the wish.
    pub fn field(&self) -> &'static str {
        match self {
            Self::Model(_) | Self::AnyModel => "model.name",
            Self::Temperature => "model.temperature",
            Self::Effort => "model.effort",
            Self::MaxTokens | Self::MaxTokensAbove(_) => "model.max_tokens",
        }
    }
}

impl Menu {
    /// A menu without choice.
    pub fn only(choice: ModelChoice) -> Self {
        Self { choice, offered: Vec::new(), temperature: false, effort: false, max_tokens: false }
    }

    /// The choice for a request with this wish.
    ///
    /// # Errors
    /// Every part of the wish that is not offered.
    pub fn choose(&self, wish: &ModelWish) -> Result<ModelChoice, Vec<NotOffered>> {
        let mut choice = self.choice.clone();
        let mut refused = Vec::new();
        match wish.name.as_ref().map(|name| self.offer(name)) {
            Some(Ok(offer)) => choice.models.clone_from(&offer.models),
            Some(Err(not_offered)) => refused.push(not_offered),
            None => {}
        }
        match wish.max_tokens {
            Some(_) if !self.max_tokens => refused.push(NotOffered::MaxTokens),
            Some(wished) => match choice.max_tokens {
                Some(most) if wished > most => refused.push(NotOffered::MaxTokensAbove(most)),
                Some(_) | None => choice.max_tokens = Some(wished),
            },
            None => {}
        }
        match wish.temperature {
            Some(_) if !self.temperature => refused.push(NotOffered::Temperature),
            Some(wished) => choice.temperature = Some(wished),
            None => {}
        }
        match wish.effort {
            Some(_) if !self.effort => refused.push(NotOffered::Effort),
            Some(wished) => choice.effort = Some(wished),
            None => {}
        }
        if refused.is_empty() { Ok(choice) } else { Err(refused) }
    }

    /// Every model that may answer.
    pub fn origins(&self) -> impl Iterator<Item = &ModelOrigin> {
        self.choice.models.iter().chain(self.offered.iter().flat_map(|offer| &offer.models))
    }

    fn offer(&self, name: &str) -> Result<&Offer, NotOffered> {
        self.offered.iter().find(|offer| offer.name == name).ok_or_else(|| match self.offered.is_empty() {
            true => NotOffered::AnyModel,
            false => NotOffered::Model(self.offered.iter().map(|offer| offer.name.clone()).collect()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::model::Effort;

    fn origin(model: &str) -> ModelOrigin {
        ModelOrigin { provider: "p".to_owned(), model: model.to_owned() }
    }

    fn menu() -> Menu {
        let models = vec![origin("a"), origin("b")];
        let choice = ModelChoice { models, max_tokens: Some(100), temperature: Some(0.5), effort: None };
        let offered = vec![Offer { name: "fast".to_owned(), models: vec![origin("b")] }];
        Menu { choice, offered, temperature: true, effort: false, max_tokens: true }
    }

    #[test]
    fn a_wish_changes_only_what_it_names() {
        let menu = menu();
        assert_eq!(menu.choose(&ModelWish::default()), Ok(menu.choice.clone()));
        let wish = ModelWish { name: Some("fast".to_owned()), max_tokens: Some(10), ..ModelWish::default() };
        let chosen = ModelChoice { models: vec![origin("b")], max_tokens: Some(10), ..menu.choice.clone() };
        assert_eq!(menu.choose(&wish), Ok(chosen));
    }

    #[test]
    fn what_is_not_offered_is_refused_by_its_field() {
        let wish = |change: fn(&mut ModelWish)| {
            let mut wish = ModelWish::default();
            change(&mut wish);
            let listed = |refused: Vec<NotOffered>| refused.iter().map(|no| (no.field(), no.to_string())).collect();
            menu().choose(&wish).map_err(listed)
        };
        let refused = |field, words: &str| Err(vec![(field, words.to_owned())]);
        assert_eq!(wish(|w| w.name = Some("big".to_owned())), refused("model.name", "must be one of: fast"));
        assert_eq!(wish(|w| w.max_tokens = Some(101)), refused("model.max_tokens", "must be at most 100"));
        assert_eq!(
            wish(|w| w.effort = Some(Effort::Low)),
            refused("model.effort", "cannot be set for this context_type")
        );
    }
}
