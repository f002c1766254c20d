//! The models that requests are written for: a vendor each, with what its section says.

use switchboard::llm::{self, Vendor};

use super::set;

/// Who is asked: a vendor, with what a test changes in the configuration.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) vendor: Vendor,
    /// Whether it is asked for responses.
    pub(super) is_responses: bool,
    pub(super) change: fn(&mut llm::LlmConfig, &str),
}

impl Model {
    /// Where the history stands in its requests.
    pub(super) fn history(self) -> &'static str {
        match self.vendor {
            Vendor::Gemini | Vendor::Vertex => "contents",
            Vendor::OpenAi if self.is_responses => "input",
            Vendor::Claude | Vendor::OpenAi | Vendor::Ollama | Vendor::Bedrock => "messages",
        }
    }
}

pub(super) const CLAUDE: Model = Model {
    vendor: Vendor::Claude,
    is_responses: false,
    change: |config, _| set(config, Vendor::Claude, "api_key = 'sk-1'"),
};

pub(super) const OLDER_CLAUDE: Model = Model {
    vendor: Vendor::Claude,
    is_responses: false,
    change: |config, _| set(config, Vendor::Claude, "model = 'claude-haiku-4-5'"),
};

pub(super) const OLDEST_CLAUDE: Model = Model {
    vendor: Vendor::Claude,
    is_responses: false,
    change: |config, _| set(config, Vendor::Claude, "model = 'claude-sonnet-4-0'"),
};

pub(super) const GEMINI: Model = Model {
    vendor: Vendor::Gemini,
    is_responses: false,
    change: |config, _| {
        set(config, Vendor::Gemini, "api_key = 'g-1'\nmodel = 'models/gemini-3.5-flash'");
    },
};

pub(super) const OLDER_GEMINI: Model = Model { vendor: Vendor::Gemini, is_responses: false, change: |_, _| {} };

pub(super) const BEDROCK: Model = Model {
    vendor: Vendor::Bedrock,
    is_responses: false,
    change: |config, _| set(config, Vendor::Bedrock, "api_key = 'b-12345678'"),
};

pub(super) const VERTEX_GEMINI: Model = Model {
    vendor: Vendor::Vertex,
    is_responses: false,
    change: |config, _| {
        let own = "project = 'acme-1'\nlocation = 'europe-west1'\napi_key = 'ya29.token'";
        set(config, Vendor::Vertex, &format!("{own}\nmodel = 'gemini-3.5-flash'"));
    },
};

pub(super) const VERTEX_CLAUDE: Model = Model {
    vendor: Vendor::Vertex,
    is_responses: false,
    change: |config, _| {
        let own = "project = 'acme-1'\napi_key = 'ya29.token'";
        set(config, Vendor::Vertex, &format!("{own}\nmodel = 'claude-sonnet-5-5'"));
    },
};

/// The same where the organisation allows forms of answers.
pub(super) const FULL_VERTEX_CLAUDE: Model = Model {
    vendor: Vendor::Vertex,
    is_responses: false,
    change: |config, _| {
        let own = "project = 'acme-1'\napi_key = 'ya29.token'\nstructured_outputs = true";
        set(config, Vendor::Vertex, &format!("{own}\nmodel = 'claude-sonnet-5-5'"));
    },
};

pub(super) const OLLAMA: Model = Model { vendor: Vendor::Ollama, is_responses: false, change: |_, _| {} };

pub(super) const OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: false,
    change: |config, url| {
        set(config, Vendor::OpenAi, &format!("api_key = 'sk-1'\nbase_url = '{url}/v1/'"));
    },
};

pub(super) const OTHER_OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: false,
    change: |config, url| {
        let base_url = format!("base_url = '{url}/openai?api-version=1'");
        let own = "max_tokens_field = 'max_completion_tokens'\nstream_options = false";
        set(config, Vendor::OpenAi, &format!("{base_url}\n{own}"));
    },
};

pub(super) const FULL_OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: false,
    change: |config, url| {
        set(config, Vendor::OpenAi, &format!("base_url = '{url}/v1/'\nresponse_format = 'full'"));
    },
};

pub(super) const BLIND_OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: false,
    change: |config, url| set(config, Vendor::OpenAi, &format!("base_url = '{url}/v1/'\ninput = ['text']")),
};

pub(super) const BLIND_CLAUDE: Model = Model {
    vendor: Vendor::Claude,
    is_responses: false,
    change: |config, _| set(config, Vendor::Claude, "input = ['text']"),
};

pub(super) const BLIND_GEMINI: Model = Model {
    vendor: Vendor::Gemini,
    is_responses: false,
    change: |config, _| set(config, Vendor::Gemini, "model = 'gemini-3.5-flash'\ninput = ['text']"),
};

pub(super) const BLIND_BEDROCK: Model = Model {
    vendor: Vendor::Bedrock,
    is_responses: false,
    change: |config, _| set(config, Vendor::Bedrock, "api_key = 'b-12345678'\ninput = ['text']"),
};

pub(super) const BLIND_VERTEX_GEMINI: Model = Model {
    vendor: Vendor::Vertex,
    is_responses: false,
    change: |config, _| {
        let own = "project = 'acme-1'\napi_key = 'ya29.token'\ninput = ['text']";
        set(config, Vendor::Vertex, &format!("{own}\nmodel = 'gemini-3.5-flash'"));
    },
};

pub(super) const BLIND_VERTEX_CLAUDE: Model = Model {
    vendor: Vendor::Vertex,
    is_responses: false,
    change: |config, _| {
        let own = "project = 'acme-1'\napi_key = 'ya29.token'\ninput = ['text']";
        set(config, Vendor::Vertex, &format!("{own}\nmodel = 'claude-sonnet-5-5'"));
    },
};

pub(super) const BLIND_RESPONSES: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: true,
    change: |config, url| {
        set(config, Vendor::OpenAi, &format!("base_url = '{url}/v1/'\nwire = 'responses'\ninput = ['text']"));
    },
};

/// A model of Ollama's that takes pictures, by its name.
pub(super) const SEEING_OLLAMA: Model = Model {
    vendor: Vendor::Ollama,
    is_responses: false,
    change: |config, _| set(config, Vendor::Ollama, "model = 'llava'"),
};

pub(super) const LEAST_OPENAI: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: false,
    change: |config, url| {
        let own = "response_format = 'json_object'\nforced_tool_choice = false";
        set(config, Vendor::OpenAi, &format!("base_url = '{url}/v1/'\n{own}"));
    },
};

pub(super) const RESPONSES: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: true,
    change: |config, url| {
        let own = "wire = 'responses'\nresponse_format = 'full'";
        set(config, Vendor::OpenAi, &format!("api_key = 'sk-1'\nbase_url = '{url}/v1/'\n{own}"));
    },
};

/// A model that does not reason, of a server that can be told little.
pub(super) const LEAST_RESPONSES: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: true,
    change: |config, url| {
        let own = "wire = 'responses'\nmodel = 'gpt-4.1'\nresponse_format = 'json_object'\nforced_tool_choice = false";
        set(config, Vendor::OpenAi, &format!("base_url = '{url}/v1/'\n{own}"));
    },
};

/// A deployment whose name says nothing, whose reasoning is not to be sent back.
pub(super) const AZURE_RESPONSES: Model = Model {
    vendor: Vendor::OpenAi,
    is_responses: true,
    change: |config, url| {
        let own = "wire = 'responses'\nmodel = 'our-deployment'\necho_reasoning = false\nextra_body = { truncation = 'auto' }";
        set(config, Vendor::OpenAi, &format!("base_url = '{url}/openai/v1?api-version=preview'\n{own}"));
    },
};
