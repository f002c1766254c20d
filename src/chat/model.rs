//! The model that answers, and its options. A profile makes a [`ModelChoice`]; a request may wish for another where the
//! profile allows it.

use super::message::ModelOrigin;

/// The model of a run, and its options.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The models that may answer, in order of trying; never empty.
    pub models: Vec<ModelOrigin>,
    /// The longest answer of one turn, in tokens; `None` leaves that to the model, or to what is known of it.
    pub max_tokens: Option<u32>,
    /// The sampling temperature, 0 to 2; `None` is the model's own.
    pub temperature: Option<f64>,
    /// How much the model thinks before it answers; `None` is the model's own way.
    pub effort: Option<Effort>,
}

impl ModelChoice {
    /// `model` alone, answers at most `max_tokens` long, everything else its own way.
    pub fn from_model(model: ModelOrigin, max_tokens: Option<u32>) -> Self {
        Self { models: vec![model], max_tokens, temperature: None, effort: None }
    }
}

/// The model that does a job beside a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Helper {
    /// None: the job is not done.
    Off,
    /// The one that answers the run.
    #[default]
    SameModel,
    /// This one.
    Model(ModelOrigin),
}

impl Helper {
    /// The choice for the job, beside a run that is answered by `model`; `None` where nobody does it.
    pub fn choice(&self, model: &ModelChoice) -> Option<ModelChoice> {
        match self {
            Self::Off => None,
            Self::SameModel => Some(model.clone()),
            Self::Model(origin) => Some(ModelChoice { models: vec![origin.clone()], ..model.clone() }),
        }
    }
}

/// A request's wishes instead of its profile's own choice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelWish {
    /// One of the names that the profile offers.
    pub name: Option<String>,
    /// One of the workloads that editors have made; another name does not count.
    pub workload: Option<String>,
    /// As [`ModelChoice::max_tokens`].
    pub max_tokens: Option<u32>,
    /// As [`ModelChoice::temperature`].
    pub temperature: Option<f64>,
    /// As [`ModelChoice::effort`].
    pub effort: Option<Effort>,
}

/// How much a model thinks before it answers. Vendors name and measure it differently; the order is the same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Not at all, as far as the model can.
    None,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as the model can.
    Max,
}

impl Effort {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Medium, Self::High, Self::Max];

    /// The effort called `name`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }

    /// Its name in settings and requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}
