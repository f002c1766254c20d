//! What the command line takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

/// One server that connects any front end to any language model and any REST backend.
#[derive(Parser)]
#[command(version)]
pub(crate) struct Cli {
    /// A settings file in place of config/default.toml.
    #[arg(long, global = true)]
    pub(crate) config: Option<PathBuf>,
    /// A folder whose files replace the built-in ones (default: config/ when it exists).
    #[arg(long, global = true)]
    pub(crate) config_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// How an editor starts its server.
#[derive(Args)]
pub(crate) struct LaunchArgs {
    /// Serve in this project folder, for its editor: settings, data and tokens are kept in its state folder.
    #[arg(long)]
    pub(crate) workdir: Option<PathBuf>,
    /// The editor's name, for the log.
    #[arg(long, requires = "workdir")]
    pub(crate) ide: Option<String>,
    /// No colours in the log.
    #[arg(long, requires = "workdir")]
    pub(crate) no_log_colors: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve (the default).
    Serve,
    /// Check all settings and say what is wrong with them.
    CheckConfig(CheckArgs),
    /// Print a token for the auth modes dev and hs256.
    Token(TokenArgs),
    /// Print the description of this server's API, in OpenAPI.
    Openapi(OpenapiArgs),
    /// Print operations of an OpenAPI document as a file of tools, to be edited and put into tools/ of the folder.
    ImportOpenapi(ImportArgs),
    /// List the tools of the configured MCP servers, with digests ready to be pasted as pins; exit code 1 if a server
    /// cannot be reached.
    McpTools(McpArgs),
    /// Serve tools to a desktop that has started this program: the Model Context Protocol on standard input and output.
    Mcp {
        /// On standard input and output.
        #[arg(long, required = true)]
        stdio: bool,
    },
    /// Check or take away the audit record.
    Audit {
        #[command(subcommand)]
        command: AuditCommand,
    },
    /// Ask the server at the configured address whether it is alive; exit code 0 if so.
    Healthcheck,
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Walk along all chains; exit code 1 and the place of the first break of each that does not hold.
    Verify,
    /// Print all lines, each as JSON on a line of its own.
    Export {
        /// One chain alone, such as tenant:acme or tokens.
        #[arg(long)]
        chain: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// Ask every model too: does it answer, stream and call tools? Makes three small calls of each; exit code 1 if one
    /// does not.
    #[arg(long)]
    pub(crate) probe: bool,
    /// How many seconds a model gets for all of its calls.
    #[arg(long, default_value_t = 60, requires = "probe", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) probe_timeout: u64,
}

#[derive(Args)]
pub(crate) struct TokenArgs {
    /// The user (`sub`).
    #[arg(long, value_parser = parse_user)]
    pub(crate) user: String,
    /// The tenant.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// A role; may be repeated.
    #[arg(long = "role")]
    pub(crate) roles: Vec<String>,
    /// How long it is good for: a number and s, m, h or d.
    #[arg(long, default_value = "1h", value_parser = parse_ttl)]
    pub(crate) ttl: Duration,
}

#[derive(Args)]
pub(crate) struct McpArgs {
    /// A server whose tools are taken from now on as they are today, in the place of what was seen first; may be repeated.
    #[arg(long = "accept", value_name = "SERVER")]
    pub(crate) accept: Vec<String>,
}

#[derive(Args)]
pub(crate) struct OpenapiArgs {
    /// In OpenAPI 3.2, which has a place for the events of streams, in place of 3.1.
    #[arg(long = "3.2")]
    pub(crate) v32: bool,
}

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// The document: OpenAPI 3.0 or 3.1, JSON or YAML.
    pub(crate) file: PathBuf,
    /// An operation by its operationId or as "METHOD /path"; may be repeated (default: all that can be tools).
    #[arg(long = "operation")]
    pub(crate) operations: Vec<String>,
    /// What stands before the name of every tool.
    #[arg(long, default_value = "")]
    pub(crate) prefix: String,
    /// What stands before every path (default: the path of the document's first server).
    #[arg(long)]
    pub(crate) base_path: Option<String>,
}

/// No server would accept another one.
fn parse_user(text: &str) -> Result<String, String> {
    match !text.trim().is_empty() && text.len() <= 256 {
        true => Ok(text.to_owned()),
        false => Err("must be 1 to 256 bytes and not blank".to_owned()),
    }
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    let wrong = || "must be a number and s, m, h or d, e.g. 1h".to_owned();
    let unit_at = text.len().checked_sub(1).filter(|at| text.is_char_boundary(*at)).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}
