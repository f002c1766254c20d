//! `[mcp.NAME]`: mistakes are found all at once, keys come from elsewhere, and secrets stay secret.

use secrecy::ExposeSecret;
use switchboard::config::Config;

use crate::support::app::sources;

/// The settings of a file with these lines.
fn load(text: &str, env: &[(&str, &str)]) -> Result<Config, Vec<String>> {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("settings.toml");
    std::fs::write(&file, text).unwrap();
    let mut sources = sources(&data, &[]);
    sources.file = Some(file);
    sources.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Config::load(&sources).map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

#[test]
fn mistakes_are_found_all_at_once() {
    let text = r#"
[mcp.Bad_Name]
url = "http://localhost:1"
[mcp.none]
[mcp.both]
url = "http://localhost:1"
command = "x"
[mcp.web]
url = "ftp://localhost"
timeout_s = 0
approval = "nobody"
args = ["x"]
headers = { "Mcp-Session-Id" = "x", "a b" = "x", Key = { env = "NO_SUCH_VARIABLE" }, Two = { env = "A", file = "b" } }
pins = { look = "abc" }
[mcp.typo]
url = "http://localhost:1"
adress = "x"
[embeddings]
model = "m"
"#;
    let expected = [
        "mcp.web.headers.Key: there is no variable NO_SUCH_VARIABLE",
        "mcp.web.headers.Two: must have one of env and file",
        "mcp.Bad_Name: the name of a section must be 1 to 32 of a-z 0-9 -",
        "mcp.typo.adress: is not a known setting",
        "mcp.both.command: must not be given beside url",
        "mcp.none.url: is required, or else command",
        "mcp.web.args: are of use only with command",
        "mcp.web.timeout_s: must be 1 to 3600",
        "mcp.web.approval: must be auto, user or role:NAME",
        "mcp.web.headers.Mcp-Session-Id: belongs to the protocol",
        "mcp.web.headers.a b: has characters that no http header can carry",
        "mcp.web.pins.look: must be a sha-256 in 64 digits 0-9 a-f; `switchboard mcp-tools` prints it",
        "mcp.web.url: must begin with http:// or https://",
        "embeddings.base_url: is required when there is a model or a key",
    ];
    let mut found = load(text, &[]).unwrap_err();
    let mut expected = expected.map(str::to_owned);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn keys_come_from_the_environment_or_a_file_and_are_never_printed() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "of-a-file\n").unwrap();
    let text = format!(
        r#"
[mcp.web]
url = "http://localhost:1/mcp"
headers = {{ Authorization = {{ env = "WEB_KEY", prefix = "Bearer " }}, X-Key = {{ file = {:?} }} }}
[mcp.program]
command = "run"
env = {{ KEY = {{ env = "WEB_KEY" }} }}
"#,
        key.display().to_string()
    );
    let env = [
        ("WEB_KEY", "of-the-environment"),
        ("PATH", "/bin"),
        ("OTHER_KEY", "stays"),
        ("SWITCHBOARD__MCP__WEB__TIMEOUT_S", "7"),
    ];
    let config = load(&text, &env).unwrap();
    let (web, program) = (&config.mcp["web"], &config.mcp["program"]);
    let shown = |secret: &switchboard::tools::secret::Secret| secret.0.expose_secret().to_owned();
    assert_eq!(shown(&web.headers["Authorization"]), "Bearer of-the-environment");
    assert_eq!(shown(&web.headers["X-Key"]), "of-a-file");
    assert_eq!((web.timeout_s, web.connect_timeout_s, web.approval.as_str()), (7, 10, "user"));
    assert_eq!(shown(&program.env["KEY"]), "of-the-environment");
    assert_eq!(program.inherited, [("PATH".to_owned(), "/bin".to_owned())].into(), "none of our keys");
    let printed = format!("{config:?}");
    assert!(!printed.contains("of-the-environment") && !printed.contains("of-a-file"), "{printed}");
}
