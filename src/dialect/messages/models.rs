//! Profiles as models of this protocol.

use serde::Serialize;
use utoipa::ToSchema;

/// A profile as a model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesModel)]
pub struct ModelBody<'a> {
    r#type: &'static str,
    id: &'a str,
    /// Its name for people.
    display_name: &'a str,
    created_at: &'static str,
}

impl<'a> ModelBody<'a> {
    /// The model of that id. Nobody knows when a profile was made, so `created_at` is the beginning of the Unix epoch.
    pub fn new(id: &'a str, title: Option<&'a str>) -> Self {
        Self { r#type: "model", id, display_name: title.unwrap_or(id), created_at: "1970-01-01T00:00:00Z" }
    }
}

/// All models, on one page.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesModelList)]
pub struct ModelListBody<'a> {
    data: Vec<ModelBody<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

impl<'a> ModelListBody<'a> {
    /// These.
    pub fn new(data: Vec<ModelBody<'a>>) -> Self {
        let (first_id, last_id) = (data.first().map(|model| model.id), data.last().map(|model| model.id));
        Self { data, has_more: false, first_id, last_id }
    }
}
