//! Where Vertex AI has its models: <https://docs.cloud.google.com/vertex-ai/generative-ai/docs/learn/locations>. What is sent
//! there, and what comes back, are the words of each model's own maker.

use reqwest::Url;
use serde::Deserialize;

use crate::llm::files::Sight;
use crate::llm::http::{self, ConnectError};
use crate::llm::{claude, gemini};

/// The address of the location that is asked where none is set.
pub(super) const BASE_URL: &str = "https://aiplatform.googleapis.com";

/// The location that has no place.
const GLOBAL: &str = "global";

/// The version of Anthropic's API that Google Cloud speaks: <https://docs.claude.com/en/api/claude-on-vertex-ai>.
pub(super) const ANTHROPIC_VERSION: &str = "vertex-2023-10-16";

/// Whose models are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Publisher {
    /// Gemini's.
    Google,
    /// Claude's.
    Anthropic,
}

impl Publisher {
    /// Whose the model of that name is.
    pub(super) fn of_model(name: &str) -> Self {
        if name.to_ascii_lowercase().starts_with("claude") { Self::Anthropic } else { Self::Google }
    }

    /// What its model of that name can be given.
    pub(super) fn sight(self) -> &'static Sight {
        match self {
            Self::Google => &gemini::SIGHT,
            Self::Anthropic => &claude::SIGHT,
        }
    }

    /// What it is called in addresses.
    fn name(self) -> &'static str {
        match self {
            Self::Google => "google",
            Self::Anthropic => "anthropic",
        }
    }

    /// What is asked of a model for a stream.
    fn method(self) -> &'static str {
        match self {
            Self::Google => "streamGenerateContent",
            Self::Anthropic => "streamRawPredict",
        }
    }
}

/// A place that has models, of a project.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// See [`origin`].
    pub(super) base_url: &'a str,
    pub(super) project: &'a str,
    /// Empty is [`GLOBAL`].
    pub(super) location: &'a str,
}

impl Place<'_> {
    /// Where the model called `model` is asked there.
    ///
    /// # Errors
    /// When one of the settings in `section` cannot be part of an address.
    pub(super) fn url(&self, section: &str, publisher: Publisher, model: &str) -> Result<Url, ConnectError> {
        let wrong = |key: &str, reason: &'static str| ConnectError::Extra {
            section: section.to_owned(),
            key: key.to_owned(),
            reason: reason.into(),
        };
        let location = match self.location.trim() {
            "" => GLOBAL,
            set => set,
        };
        let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !is_name(location) {
            return Err(wrong("location", "must be global, us, eu or the name of a region, such as europe-west1"));
        }
        let project = self.project.trim();
        // The oldest projects have the name of a domain before theirs: `example.com:name`.
        let may_be_in_it = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b':');
        if !project.starts_with(|c: char| c.is_ascii_alphanumeric()) || !project.bytes().all(may_be_in_it) {
            return Err(wrong("project", "must be the id or the number of a project of Google Cloud"));
        }
        let method = format!("{model}:{}", publisher.method());
        let place = ["v1", "projects", project, "locations", location];
        let path = [&place[..], &["publishers", publisher.name(), "models", &method]].concat();
        let mut url = http::join(section, &origin(self.base_url, location), &path)?;
        if publisher == Publisher::Google {
            // Without it the answer is one JSON list instead of events.
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        Ok(url)
    }
}

/// The address of the API: as it is set, or that of `location`.
fn origin(base_url: &str, location: &str) -> String {
    match (base_url.trim().trim_end_matches('/'), location) {
        (BASE_URL, GLOBAL) => BASE_URL.to_owned(),
        // They lie in several regions.
        (BASE_URL, "us" | "eu") => format!("https://aiplatform.{location}.rep.googleapis.com"),
        (BASE_URL, region) => format!("https://{region}-aiplatform.googleapis.com"),
        (set, _) => set.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base_url: &str, location: &str, model: &str) -> String {
        let place = Place { base_url, project: "acme-1", location };
        place.url("llm.vertex", Publisher::of_model(model), model).unwrap().to_string()
    }

    #[test]
    fn each_location_has_its_host_and_each_publisher_its_method() {
        let rows = [
            ("", "aiplatform.googleapis.com", "global"),
            ("global", "aiplatform.googleapis.com", "global"),
            (" us ", "aiplatform.us.rep.googleapis.com", "us"),
            ("eu", "aiplatform.eu.rep.googleapis.com", "eu"),
            ("europe-west1", "europe-west1-aiplatform.googleapis.com", "europe-west1"),
        ];
        for (location, host, named) in rows {
            let before = format!("https://{host}/v1/projects/acme-1/locations/{named}/publishers");
            let gemini = format!("{before}/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
            assert_eq!(url(BASE_URL, location, "gemini-2.5-flash"), gemini);
            let claude = format!("{before}/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict");
            assert_eq!(url(BASE_URL, location, "claude-sonnet-4-5@20250929"), claude);
        }
        let proxied = "http://proxy:8080/vertex/v1/projects/acme-1/locations/eu/publishers/google/models/x:streamGenerateContent?alt=sse";
        assert_eq!(url("http://proxy:8080/vertex/", "eu", "x"), proxied, "an address of one's own stays");
    }

    #[test]
    fn what_would_change_the_address_is_refused_or_encoded() {
        let rows = [
            ("acme", "eu/../../x", "location"),
            ("acme", "evil.example.com/", "location"),
            ("acme", "EU", "location"),
            ("", "eu", "project"),
            ("acme/locations/x", "eu", "project"),
            ("acme?x", "eu", "project"),
            ("..", "eu", "project"),
        ];
        for (project, location, key) in rows {
            let place = Place { base_url: BASE_URL, project, location };
            let error = place.url("llm.vertex", Publisher::Google, "m").unwrap_err().to_string();
            assert!(error.starts_with(&format!("llm.vertex.{key} must be ")), "{error}");
        }
        let model = url(BASE_URL, "", "../m?x#y");
        assert!(model.ends_with("/publishers/google/models/..%2Fm%3Fx%23y:streamGenerateContent?alt=sse"), "{model}");
    }
}
