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
    capabilities: CapabilitiesBody,
}

/// What a profile gives to clients of this protocol.
#[derive(Debug, Clone, Copy)]
pub struct Gives {
    /// Its model takes pictures.
    pub image: bool,
    /// Its model takes PDF documents.
    pub pdf: bool,
    /// A request may say how much it thinks.
    pub effort: bool,
    /// Its thoughts are shown.
    pub thinking: bool,
}

/// The same as clients of this protocol look for it, with all keys that they know. What the vendor's own server does besides
/// models, such as batches and citations, is not there.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesCapabilities)]
struct CapabilitiesBody {
    batch: Support,
    citations: Support,
    code_execution: Support,
    context_management: ContextManagementBody,
    effort: EffortBody,
    image_input: Support,
    pdf_input: Support,
    server_tools: ServerToolsBody,
    structured_outputs: Support,
    thinking: ThinkingBody,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = MessagesSupport)]
struct Support {
    supported: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesContextManagement)]
struct ContextManagementBody {
    supported: bool,
    clear_thinking_20251015: Option<Support>,
    clear_tool_uses_20250919: Option<Support>,
    compact_20260112: Option<Support>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesEffort)]
struct EffortBody {
    supported: bool,
    low: Support,
    medium: Support,
    high: Support,
    xhigh: Support,
    max: Support,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesServerTools)]
struct ServerToolsBody {
    supported: bool,
    code_execution: Support,
    web_search: Support,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesThinking)]
struct ThinkingBody {
    supported: bool,
    types: ThinkingTypesBody,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = MessagesThinkingTypes)]
struct ThinkingTypesBody {
    adaptive: Support,
    between_tools: Support,
    disabled: Support,
    enabled: Support,
}

impl CapabilitiesBody {
    fn of(Gives { image, pdf, effort, thinking }: Gives) -> Self {
        let is = |supported| Support { supported };
        let (no, by_effort, shown) = (is(false), is(effort), is(thinking));
        Self {
            batch: no,
            citations: no,
            code_execution: no,
            context_management: ContextManagementBody {
                supported: false,
                clear_thinking_20251015: None,
                clear_tool_uses_20250919: None,
                compact_20260112: None,
            },
            effort: EffortBody {
                supported: effort,
                low: by_effort,
                medium: by_effort,
                high: by_effort,
                xhigh: by_effort,
                max: by_effort,
            },
            image_input: is(image),
            pdf_input: is(pdf),
            server_tools: ServerToolsBody { supported: false, code_execution: no, web_search: no },
            structured_outputs: is(true),
            thinking: ThinkingBody {
                supported: thinking,
                types: ThinkingTypesBody { adaptive: shown, between_tools: shown, disabled: is(true), enabled: shown },
            },
        }
    }
}

impl<'a> ModelBody<'a> {
    /// The model of that id. Nobody knows when a profile was made, so `created_at` is the beginning of the Unix epoch.
    pub fn new(id: &'a str, title: Option<&'a str>, gives: Gives) -> Self {
        let capabilities = CapabilitiesBody::of(gives);
        let created_at = "1970-01-01T00:00:00Z";
        Self { r#type: "model", id, display_name: title.unwrap_or(id), created_at, capabilities }
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
