//! The day of `docs/OPERATIONS.md`, word by word: its blocks are taken out of the document and run in order in one shell, in a
//! folder and on ports of the test's own. The document says what has to be true; where a block fails, so does the test.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use super::{free_port, is_installed, path, text};
use crate::support::environment::{is_long, skip};

/// How long the whole day may take on a busy machine.
const DAY: Duration = Duration::from_secs(400);

/// The blocks that are marked, in order: name and text.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    let marked = document.split("<!-- walk: ").skip(1);
    marked
        .map(|rest| {
            let (name, rest) = rest.split_once(" -->\n").unwrap();
            let (language, rest) = rest.split_once('\n').unwrap();
            assert!(["```sh", "```bash"].contains(&language), "{name}: {language}");
            (name, rest.split_once("\n```\n").unwrap().0)
        })
        .collect()
}

/// The programs that the first block installs, as far as the day runs them by name.
const PROGRAMS: [&str; 7] = ["curl", "openssl", "python3", "nginx", "redis-server", "runuser", "cc"];

/// What the shell leaves behind, however it ends: every process whose id it has written down, and PostgreSQL.
const CLEAN: &str = r#"
finish() {
    code=$?
    set +e
    # Its workers would outlive a master that is killed.
    kill -TERM "$(cat "$DIR/nginx/nginx.pid")" 2>/dev/null
    for file in "$DIR"/*.pid; do kill -KILL "$(cat "$file")"; done 2>/dev/null
    [ -z "${load:-}" ] || kill -KILL "$load" 2>/dev/null
    [ ! -d "$DIR/postgres/data" ] || as_postgres pg_ctl -D "$DIR/postgres/data" -m immediate stop >/dev/null 2>&1
    exit $code
}
trap finish EXIT
trap exit INT TERM HUP
"#;

/// The day as one script; each block tells when it begins.
fn script(document: &str, packages: bool) -> String {
    let mut script = CLEAN.to_owned();
    for (name, block) in blocks(document).into_iter().filter(|(name, _)| packages || *name != "packages") {
        script.push_str(&format!("echo '== {name}'\n{block}\n"));
    }
    script
}

/// Whether all that the day needs is here.
fn is_equipped() -> bool {
    let missing: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_installed(program)).collect();
    let has_postgres = std::fs::read_dir("/usr/lib/postgresql")
        .is_ok_and(|mut versions| versions.any(|version| version.unwrap().path().join("bin/initdb").is_file()));
    if missing.is_empty() && has_postgres {
        return true;
    }
    skip(&format!("not installed: {missing:?}, postgresql: {has_postgres}"));
    false
}

#[tokio::test]
async fn a_day_from_a_bare_machine_to_two_replicas_that_are_replaced_while_people_chat() {
    if !is_equipped() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("switchboard-day.").tempdir_in("/tmp").unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", &script(&text("docs/OPERATIONS.md"), is_long())]).current_dir(path(""));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("SWITCHBOARD_")) {
        command.env_remove(name);
    }
    let mut ports = BTreeSet::new();
    for port in ["DOOR", "PORT_1", "PORT_2", "METRICS_1", "METRICS_2", "POSTGRES", "REDIS", "ISSUER"] {
        let free = std::iter::repeat_with(free_port).find(|port| ports.insert(*port)).unwrap();
        command.env(port, free.to_string());
    }
    command.env("DIR", folder.path()).env("SWITCHBOARD", env!("CARGO_BIN_EXE_switchboard"));
    let log = folder.path().join("day.log");
    let said = std::fs::File::create(&log).unwrap();
    let running =
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said).kill_on_drop(true).status();
    let ended = tokio::time::timeout(DAY, running).await;
    let told = std::fs::read_to_string(&log).unwrap();
    let code = ended.unwrap_or_else(|_| panic!("the day does not end:\n{told}")).unwrap().code();
    assert_eq!(code, Some(0), "{told}\n{}", logs(folder.path()));

    let summary = told.lines().find(|line| line.contains(" failed, ")).unwrap();
    let (runs, rest) = summary.split_once(" runs, ").unwrap();
    assert!(rest.starts_with("0 failed, "), "{summary}");
    assert!(runs.parse::<u32>().unwrap() > 20, "too few to tell anything: {summary}");
    for replica in ["replica-1", "replica-2"] {
        let log = std::fs::read_to_string(folder.path().join(format!("{replica}.log"))).unwrap();
        assert_eq!(log.matches("switchboard listening on").count(), 2, "{replica} was replaced");
        assert_eq!(log.matches("\"stopped\"").count(), 2, "{replica} ended well twice");
        assert!(log.matches("request answered").count() > 10, "{replica} did its part");
    }
}

/// The end of each log, for whoever has to find out what went wrong.
fn logs(folder: &Path) -> String {
    let files = ["replica-1.log", "replica-2.log", "nginx/error.log", "load.txt", "postgres/log"];
    let ends = files.map(|file| {
        let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("-- {file}\n{}", lines[lines.len().saturating_sub(15)..].join("\n"))
    });
    ends.join("\n")
}

#[test]
fn the_day_has_all_its_steps_and_no_block_that_nobody_runs() {
    let document = text("docs/OPERATIONS.md");
    let day = document.split("\n## ").find(|section| section.starts_with("A day")).unwrap();
    let names: Vec<&str> = blocks(&document).into_iter().map(|(name, _)| name).collect();
    let steps =
        ["packages", "places", "build", "postgresql", "redis", "issuer", "settings", "replicas", "nginx", "chat"];
    assert_eq!(&names[..steps.len()], steps);
    assert!(names.ends_with(&["restart", "end"]), "{names:?}");
    assert_eq!(day.matches("\n```").count(), 2 * names.len(), "every block of the day has a mark");
}
