//! `[models."provider:model"]`: what models can be given of files. Like those of prices, their names are the operator's to write.

use toml::{Table, Value};

use super::Problem;
use crate::llm::{ModelConfig, ModelConfigs};

/// Takes the section out of `layer`.
pub(super) fn take(layer: &mut Table, problems: &mut Vec<Problem>) -> ModelConfigs {
    let models = match layer.remove("models") {
        None => return ModelConfigs::default(),
        Some(Value::Table(models)) => models,
        Some(_) => {
            problems.push(Problem::new("models", "must be a section"));
            return ModelConfigs::default();
        }
    };
    let read = models.into_iter().filter_map(|(name, said)| {
        let path = format!("models.{name}");
        if !said.is_table() {
            problems.push(Problem::new(path, "must be a section"));
            return None;
        }
        match serde_path_to_error::deserialize::<_, ModelConfig>(said) {
            Ok(said) => Some((name, said)),
            Err(error) => {
                let reason = error.inner().message().trim_end();
                problems.push(Problem::new(format!("{path}.{}", error.path()), reason));
                None
            }
        }
    });
    ModelConfigs::new(read.collect::<Vec<_>>())
}
