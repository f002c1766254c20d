//! The command line: `serve` (the default), `check-config`, `token`, `openapi`, `import-openapi`, `mcp`, `mcp-tools`, `audit`,
//! `healthcheck`.
//! Thin: all work is in the library.

mod arguments;

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arguments::{AuditCommand, CheckArgs, Cli, Command, ImportArgs, LaunchArgs, McpArgs, OpenapiArgs, TokenArgs};
use clap::Parser;
use futures::FutureExt;
use switchboard::agent::ports::clock::SystemClock;
use switchboard::agent::ports::identity::Authenticator;
use switchboard::app::stdio::Bearer;
use switchboard::app::{self, App, StartError, Verified};
use switchboard::chat::causes::Causes;
use switchboard::config::catalogue::openapi::print::{self as import, Import};
use switchboard::config::{BackendMode, Config, Launch, LogFormat, Problem, Sources};
use switchboard::http::auth::{self, Claims, Mode};
use switchboard::http::description::{self, Version};
use switchboard::probe::{self, Report};
use switchboard::store;
use switchboard::tools::backend::probe::{self as backend, BackendReport};
use switchboard::tools::mcp;
#[cfg(feature = "workspace")]
use switchboard::workspace::command::exec;
use switchboard::{healthcheck, telemetry};
use tokio::signal::unix::{SignalKind, signal};

/// For streams that come and go on many threads: after a rush glibc's own keeps twice as much (docs/PERFORMANCE.md, Memory).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code for a mistake in the configuration or on the command line.
const MISCONFIGURED: u8 = 2;

fn main() -> ExitCode {
    // Before anything else, in one thread: this process becomes the sandbox of a command.
    #[cfg(feature = "workspace")]
    {
        let mut args = std::env::args_os().skip(1);
        if args.next().is_some_and(|name| name == exec::NAME) {
            return exec::main(args);
        }
    }
    // Where the allocator has a huge page for a few bytes, 2 MiB are resident; what is idle would hold most of them.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let code = run(Cli::parse());
    if IS_UNWRITTEN.load(Ordering::Relaxed) { ExitCode::FAILURE } else { code }
}

fn run(cli: Cli) -> ExitCode {
    if let Some(Command::ImportOpenapi(args)) = cli.command {
        return import_openapi(args);
    }
    if let Some(Command::Openapi(args)) = cli.command {
        return openapi(&args);
    }
    let mut sources = Sources::of_process(cli.config, cli.config_dir);
    let command = cli.command.unwrap_or(Command::Serve);
    if let Some(workdir) = cli.launch.workdir {
        if !matches!(command, Command::Serve) {
            return misconfigured(&[Problem {
                key: "--workdir".to_owned(),
                reason: "is for serving, and for no other command".to_owned(),
            }]);
        }
        let LaunchArgs { ide, no_log_colors, .. } = cli.launch;
        sources.launch = Some(Launch { workdir, editor: ide.unwrap_or_default(), colors: !no_log_colors });
    }
    let config = match Config::load(&sources) {
        Ok(config) => config,
        Err(mut problems) => {
            match command {
                Command::Serve | Command::CheckConfig(_) => {
                    // Both look at the settings' own models.
                    let found = file_problems(&sources).into_iter().filter(|problem| !problems.contains(problem));
                    problems.extend(found.collect::<Vec<_>>());
                }
                Command::Token(_)
                | Command::Healthcheck
                | Command::Openapi(_)
                | Command::ImportOpenapi(_)
                | Command::Audit { .. }
                | Command::Mcp { .. }
                | Command::McpTools(_) => {}
            }
            return misconfigured(&problems);
        }
    };
    match command {
        Command::Serve => serve(&config, &sources),
        Command::CheckConfig(args) => check_config(&config, &sources, &args),
        Command::Token(args) => token(&config, args),
        Command::Openapi(args) => openapi(&args),
        Command::ImportOpenapi(args) => import_openapi(args),
        Command::McpTools(args) => mcp_tools(&config, &args),
        Command::Mcp { stdio: _ } => mcp_stdio(config, &sources),
        Command::Audit { command } => audit(&config, command),
        Command::Healthcheck => match healthcheck::live(config.server.bind().0) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&Causes(&error).to_string()),
        },
    }
}

/// Serves the local user's tools to whoever has started this program. The user is the one whose token is in `SWITCHBOARD_TOKEN`, else
/// that of `dev` mode.
fn mcp_stdio(mut config: Config, sources: &Sources) -> ExitCode {
    // A server beside others of the same settings: no port of theirs is taken.
    "127.0.0.1:0".clone_into(&mut config.server.bind);
    config.metrics.bind.clear();
    let given = sources.env.get("SWITCHBOARD_TOKEN").cloned().filter(|token| !token.is_empty());
    let traces = match telemetry::init(&config) {
        Ok(traces) => traces,
        Err(error) => return failed(&Causes(&error).to_string()),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime did not start: {error}")),
    };
    let code = runtime.block_on(async {
        let (stop, hurry) = match (stop_signals(1), stop_signals(2)) {
            (Ok(stop), Ok(hurry)) => (stop, hurry),
            (Err(error), _) | (_, Err(error)) => return failed(&format!("signals cannot be received: {error}")),
        };
        let app = match App::build(&config, &sources.assets()).await {
            Ok(app) => app,
            Err(StartError::Config(problems)) => return misconfigured(&problems),
            Err(error) => return failed(&Causes(&error).to_string()),
        };
        let bearer = match (given, app.dev_tokens()) {
            (Some(token), _) => Bearer::Given(token.into()),
            (None, Some(own)) => Bearer::Own(own.clone()),
            (None, None) => return failed("SWITCHBOARD_TOKEN must have the token of the user; this server makes none"),
        };
        let (input, output) = match (of_process(std::io::stdin()), of_process(std::io::stdout())) {
            (Ok(input), Ok(output)) => (input, output),
            (Err(error), _) | (_, Err(error)) => return failed(&format!("no messages can be carried: {error}")),
        };
        let carrying = app::stdio::carry(app.address(), bearer, input, output);
        let ended = async {
            tokio::select! {
                () = carrying => {}
                () = stop => {}
            }
        };
        app.serve(ended, hurry).await;
        ExitCode::SUCCESS
    });
    traces.close();
    // Whoever waits for a line of standard input cannot be called off.
    runtime.shutdown_background();
    code
}

/// An end of this process's, which is read and written beside the workers.
fn of_process(end: impl AsFd) -> std::io::Result<tokio::fs::File> {
    let end = end.as_fd().try_clone_to_owned()?;
    Ok(tokio::fs::File::from_std(std::fs::File::from(end)))
}

fn serve(config: &Config, sources: &Sources) -> ExitCode {
    let traces = match telemetry::init(config) {
        Ok(traces) => traces,
        Err(error) => return failed(&Causes(&error).to_string()),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime did not start: {error}")),
    };
    let code = runtime.block_on(async {
        // From before the address is printed on: whoever has read it may ask the server to stop.
        let (stop, hurry) = match (stop_signals(1), stop_signals(2)) {
            (Ok(stop), Ok(hurry)) => (stop, hurry),
            (Err(error), _) | (_, Err(error)) => return failed(&format!("signals cannot be received: {error}")),
        };
        let mut stop = std::pin::pin!(stop);
        let assets = sources.assets();
        // A database or a broker may take its time to answer.
        let built = tokio::select! {
            built = App::build(config, &assets) => built,
            () = &mut stop => return ExitCode::SUCCESS,
        };
        let app = match built {
            Ok(app) => app,
            Err(StartError::Config(problems)) => return misconfigured(&problems),
            Err(error) => return failed(&Causes(&error).to_string()),
        };
        for weakness in config.weaknesses() {
            match config.log.format {
                // Whoever reads JSON reads nothing else.
                LogFormat::Json => tracing::warn!("{weakness}"),
                LogFormat::Text => complain(&format!("WARNING: {weakness}")),
            }
        }
        if let Err(error) = greet(&app, config) {
            return failed(&error);
        }
        app.serve(stop, hurry).await;
        ExitCode::SUCCESS
    });
    traces.close();
    code
}

/// The address on one line; in dev mode also a curl that can be pasted.
fn greet(app: &App, config: &Config) -> Result<(), String> {
    let address = app.address();
    let (model, fallbacks) = match app.models() {
        [] => ("none".to_owned(), String::new()),
        [first, rest @ ..] => {
            let names: Vec<_> = rest.iter().map(|model| format!("{}:{}", model.provider, model.model)).collect();
            let fallbacks = if names.is_empty() { String::new() } else { format!("fallbacks: {}, ", names.join(" ")) };
            (format!("provider: {}, model: {}", first.provider, first.model), fallbacks)
        }
    };
    let backend = match config.backend.mode {
        BackendMode::Demo => "demo",
        BackendMode::Http => config.backend.base_url.as_str(),
    };
    say(&format!(
        "switchboard listening on http://{address} ({model}, {fallbacks}backend: {backend}, store: {})",
        config.store.display_url()
    ));
    if let Some(address) = app.metrics_address() {
        say(&format!("metrics on http://{address}/metrics"));
    }
    if let Some(Launch { editor, .. }) = &config.launch {
        tracing::info!(editor, root = config.workspace.root, "started for an editor");
    }
    let Some(dev_tokens) = app.dev_tokens() else { return Ok(()) };
    if config.server.page {
        say(&format!("\nThe chat page: http://{address}/"));
    }
    if config.launch.is_some() {
        // An editor keeps what is said here, and needs no token.
        return Ok(());
    }
    let token = dev_tokens.token().map_err(|error| error.to_string())?.token;
    say(&format!(
        r#"
Try it (the token is for development and good for 12 hours):

curl -N http://{address}/v1/agent/chat \
  -H 'Content-Type: application/json' \
  -H 'Authorization: Bearer {token}' \
  -d '{EXAMPLE}'
"#
    ));
    Ok(())
}

/// A question about a workflow that the demo backend is seeded with; else one for the plain profile.
const EXAMPLE: &str = match cfg!(feature = "workflow") {
    true => {
        r#"{"message": "What does this workflow do?", "context_type": "workflow", "context": {"workflow_id": "550e8400-e29b-41d4-a716-446655440000"}}"#
    }
    false => r#"{"message": "Hello", "context_type": "chat"}"#,
};

fn check_config(config: &Config, sources: &Sources, args: &CheckArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime did not start: {error}")),
    };
    let models = match runtime.block_on(app::check(config, &sources.assets())) {
        Ok(models) => models,
        Err(StartError::Config(problems)) => return misconfigured(&problems),
        Err(error) => return failed(&Causes(&error).to_string()),
    };
    for weakness in config.weaknesses() {
        complain(&format!("WARNING: {weakness}"));
    }
    say("the configuration is good");
    if !args.probe {
        return ExitCode::SUCCESS;
    }
    let limit = Duration::from_secs(args.probe_timeout);
    let both =
        async { tokio::join!(app::probe_models(&config.llm, models, limit), app::probe_backends(config, limit)) };
    let (of_models, of_backends) = match runtime.block_on(both) {
        (of_models, Ok(of_backends)) => (of_models, of_backends),
        (_, Err(error)) => return failed(&Causes(&error).to_string()),
    };
    match of_models.is_empty() {
        true => say("there is no model to probe: the built-in demo model answers"),
        false => probe::table(&of_models).iter().for_each(|line| say(line)),
    }
    if !of_backends.is_empty() {
        backend::table(&of_backends).iter().for_each(|line| say(line));
    }
    match of_models.iter().all(Report::is_good) && of_backends.iter().all(BackendReport::is_good) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The mistakes in the files, of all settings depending only on those of the models: so both kinds of mistakes are
/// reported at once.
fn file_problems(sources: &Sources) -> Vec<Problem> {
    let Ok(defaults) = Config::load(&Sources::default()) else { return Vec::new() };
    let Some(llm) = Config::readable(sources).map(|config| config.llm) else { return Vec::new() };
    let config = Config { llm, ..defaults };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map(|runtime| runtime.block_on(app::check(&config, &sources.assets()))) {
        Ok(Err(StartError::Config(problems))) => problems,
        Ok(_) | Err(_) => Vec::new(),
    }
}

fn token(config: &Config, args: TokenArgs) -> ExitCode {
    let TokenArgs { user, tenant, roles, ttl } = args;
    if matches!(config.auth.mode, Mode::Rs256 | Mode::Jwks) {
        return misconfigured(&[Problem {
            key: "auth.mode".to_owned(),
            reason: "tokens can only be made in the modes dev and hs256".to_owned(),
        }]);
    }
    let tokens = auth::build(&config.auth, "", Arc::new(SystemClock));
    let signed = tokens.and_then(|tokens| {
        let token = tokens.sign(&Claims { user, tenant, roles, ttl }, now_s())?;
        Ok((tokens, token))
    });
    let (tokens, token) = match signed {
        Ok(signed) => signed,
        Err(error) => return failed(&Causes(&error).to_string()),
    };
    // The key is here, so nothing is waited for.
    match tokens.authenticate(&token).now_or_never() {
        Some(Err(error)) => failed(&format!("no server with these settings accepts such a token: {}", Causes(&error))),
        Some(Ok(_)) | None => {
            say(&token);
            ExitCode::SUCCESS
        }
    }
}

fn openapi(args: &OpenapiArgs) -> ExitCode {
    let version = if args.v32 { Version::V32 } else { Version::V31 };
    say(description::text(version).trim_end());
    ExitCode::SUCCESS
}

/// The tools go to the standard output; what was left out, to the other.
fn import_openapi(args: ImportArgs) -> ExitCode {
    let ImportArgs { file, operations, prefix, base_path } = args;
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => return failed(&format!("{} cannot be read: {error}", file.display())),
    };
    match import::import(&text, &Import { operations, prefix, base_path }) {
        Ok(printed) => {
            printed.notes.iter().for_each(|note| complain(note));
            say(printed.text.trim_end());
            ExitCode::SUCCESS
        }
        Err(mistakes) => {
            for mistake in mistakes {
                complain(&format!("{}: {mistake}", file.display()));
            }
            ExitCode::from(MISCONFIGURED)
        }
    }
}

fn mcp_tools(config: &Config, args: &McpArgs) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime did not start: {error}")),
    };
    let mut code = ExitCode::SUCCESS;
    if config.mcp.is_empty() {
        complain("no server is configured: [mcp.NAME] in the settings, see docs/MCP.md");
    }
    if let Some(unknown) = args.accept.iter().find(|name| !config.mcp.contains_key(*name)) {
        return failed(&format!("there is no [mcp.{unknown}] in the settings"));
    }
    for (name, server) in &config.mcp {
        match runtime.block_on(mcp::ask(name, server)) {
            Ok(tools) => {
                if args.accept.contains(name) {
                    let definitions: Vec<_> =
                        tools.iter().map(|tool| (tool.name.clone(), tool.digest.clone())).collect();
                    if let Err(error) = runtime.block_on(accept(config, name, &definitions)) {
                        return failed(&format!("{name}: {}", Causes(&*error)));
                    }
                }
                say(&format!("[mcp.{name}.pins]"));
                for tool in tools {
                    let key = toml::Value::String(tool.name);
                    say(&format!("{key} = \"{}\"  # {}", tool.digest, tool.description));
                }
                say("");
            }
            Err(error) => code = failed(&format!("{name}: {}", Causes(&error))),
        }
    }
    code
}

fn audit(config: &Config, command: AuditCommand) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("the runtime did not start: {error}")),
    };
    match command {
        AuditCommand::Verify => match runtime.block_on(app::verify_audit(config)) {
            Ok(verified) => report_verified(&verified),
            Err(error) => failed(&Causes(&error).to_string()),
        },
        AuditCommand::Export { chain } => {
            let mut out = std::io::stdout().lock();
            let exported = app::export_audit(config, chain.as_deref(), |line| out.write_all(line.as_bytes()));
            match runtime.block_on(exported) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&Causes(&error).to_string()),
            }
        }
    }
}

/// The end of each chain is printed, to be kept elsewhere: a record that was made anew as a whole has another one.
fn report_verified(verified: &[Verified]) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for Verified { chain, lines, broken } in verified {
        let waiting = match chain.waiting {
            0 => String::new(),
            waiting => format!(", {waiting} not chained yet"),
        };
        // A tenant may have any name, that of another line too.
        let name = match chain.name.contains(char::is_control) {
            true => Cow::Owned(format!("{:?}", chain.name)),
            false => Cow::Borrowed(&chain.name),
        };
        match broken {
            None => say(&format!("{name}: {lines} lines hold{waiting}, the last one is {}", chain.digest)),
            Some(broken) => code = failed(&format!("{name}: {broken}; {lines} lines before it hold")),
        }
    }
    code
}

/// Keeps what the operator accepts, for all replicas.
async fn accept(
    config: &Config,
    server: &str,
    definitions: &[(String, String)],
) -> Result<(), Box<dyn std::error::Error>> {
    let store = store::open(&config.store, Arc::new(SystemClock), Arc::default()).await?;
    let accepted = store.accept(server, definitions).await;
    store.close().await;
    Ok(accepted?)
}

/// Done at the `count`th SIGTERM or Ctrl-C; they are noticed from this call on, not only once it is waited for.
fn stop_signals(count: usize) -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        for _ in 0..count {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    })
}

fn now_s() -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_epoch.map_or(0, |duration| duration.as_secs())
}

fn misconfigured(problems: &[Problem]) -> ExitCode {
    for problem in problems {
        complain(&format!("configuration: {problem}"));
    }
    ExitCode::from(MISCONFIGURED)
}

fn failed(message: &str) -> ExitCode {
    complain(&format!("switchboard: {message}"));
    ExitCode::FAILURE
}

/// Set once a line could not be written to standard output.
static IS_UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard output. A closed pipe is no reason to fail; a full disk is.
fn say(line: &str) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe && !IS_UNWRITTEN.swap(true, Ordering::Relaxed) => {
            complain(&format!("switchboard: the standard output cannot be written: {error}"));
        }
        Ok(()) | Err(_) => {}
    }
}

fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
