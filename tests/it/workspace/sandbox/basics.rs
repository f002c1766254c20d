//! Results, bounds and ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use switchboard::workspace::command::request::{CommandError, CommandRequest, CommandResult, Line, Stream};
use switchboard::workspace::command::{Kind, Wanted, probe};

use super::kit::{Place, alive, all, mark, one, settings};

fn within(seconds: f32, command: impl Into<String>) -> CommandRequest {
    CommandRequest { timeout: Duration::from_secs_f32(seconds), ..CommandRequest::new(command) }
}

#[test]
fn results_are_told_whole() {
    all(&settings(), async |place| {
        let request = CommandRequest { cwd: Some("sub".to_owned()), ..CommandRequest::new("pwd; echo no >&2; exit 3") };
        let found = place.ask(request).await;
        let cwd = place.root.join("sub").to_str().unwrap().to_owned();
        let expected = CommandResult {
            command: "pwd; echo no >&2; exit 3".to_owned(),
            cwd: cwd.clone(),
            exit_code: 3,
            stdout: format!("{cwd}\n"),
            stderr: "no\n".to_owned(),
            stdout_truncated: false,
            stderr_truncated: false,
            stdout_truncated_bytes: 0,
            stderr_truncated_bytes: 0,
            timed_out: false,
            duration_ms: found.duration_ms,
        };
        assert_eq!(found, expected);
    });
}

#[test]
fn ends_are_told_as_a_shell_tells_them() {
    all(&settings(), async |place| {
        let table = [
            ("fine", "true", 0, "", ""),
            ("an exit code", "exit 255", 255, "", ""),
            ("a signal", "kill -TERM $$", 143, "", ""),
            ("a kill", "kill -KILL $$", 137, "", ""),
            ("a crash", "kill -SEGV $$", 139, "", ""),
            ("no such program", "no-such-program 2>/dev/null", 127, "", ""),
            ("an empty input", "cat; read line || echo empty", 0, "empty\n", ""),
            ("a broken pipe is a quiet end", "yes | head -n 1", 0, "y\n", ""),
            ("not UTF-8", "printf 'a\\377b'", 0, "a\u{fffd}b", ""),
            ("both outputs", "echo out; echo err >&2", 0, "out\n", "err\n"),
            ("writing into the root", "echo new > sub/new && cat sub/new", 0, "new\n", ""),
            ("a temporary folder", "echo t > $TMPDIR/t && cat $TMPDIR/t", 0, "t\n", ""),
            ("a home", "cd && echo h > h && cat ~/h", 0, "h\n", ""),
            ("another shell", "bash -c 'cat <(echo sub)'", 0, "sub\n", ""),
            ("another interpreter", "perl -e 'print 6*7'", 0, "42", ""),
        ];
        for (reason, command, code, stdout, stderr) in table {
            let found = place.run(command).await;
            assert_eq!((found.exit_code, &*found.stdout, &*found.stderr), (code, stdout, stderr), "{reason}");
        }
        assert_eq!(fs::read_to_string(place.root.join("sub/new")).unwrap(), "new\n");
    });
}

#[test]
fn a_timeout_keeps_the_output_until_then() {
    all(&settings(), async |place| {
        let mark = mark(1);
        let begun = Instant::now();
        let found = place.ask(within(0.5, format!("echo begun; sleep {mark}; echo never"))).await;
        assert_eq!((found.stdout.as_str(), found.timed_out), ("begun\n", true));
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert!(found.duration_ms >= 500);
        assert_eq!(alive(&mark), 0);
    });
}

#[test]
fn nothing_outlives_its_command() {
    all(&settings(), async |place| {
        let mark = mark(2);
        let table = [
            ("in the background", format!("sleep {mark} &")),
            ("with the pipes closed", format!("sleep {mark} >/dev/null 2>&1 </dev/null &")),
            ("deaf to hang-ups", format!("nohup sleep {mark} >/dev/null 2>&1 &")),
            ("in a session of its own", format!("setsid sleep {mark} >/dev/null 2>&1 &")),
            ("forked twice", format!("(setsid sh -c 'sleep {mark} & sleep {mark} &' &) ; sleep 0.1")),
            ("deaf to everything", format!("(trap '' TERM HUP INT; sleep {mark}; sleep {mark}) & sleep 0.1")),
            ("stopped", format!("sleep {mark} & kill -STOP $!")),
            ("the shell is replaced", format!("sleep {mark} & exec true")),
        ];
        for (reason, command) in table {
            let found = place.run(&format!("{command}\necho done")).await;
            let done = if reason == "the shell is replaced" { "" } else { "done\n" };
            assert_eq!((found.exit_code, &*found.stdout, found.timed_out), (0, done, false), "{reason}");
            assert!(found.duration_ms < 60_000, "{reason}: {}", found.duration_ms);
            assert_eq!(alive(&mark), 0, "{reason}");
        }
    });
}

#[test]
fn nothing_outlives_a_dropped_future() {
    all(&settings(), async |place| {
        let mark = mark(3);
        let command = format!("setsid sh -c 'sleep {mark}' & sleep {mark} & echo up; sleep {mark}");
        let (sender, mut lines) = tokio::sync::mpsc::channel(8);
        let running = place.commands.run(within(60.0, command), Some(sender));
        tokio::select! {
            _ = running => panic!("it should run"),
            line = lines.recv() => assert_eq!(line, Some(Line { stream: Stream::Stdout, text: "up".to_owned() })),
        }
        // The future is dropped.
        let begun = Instant::now();
        place.commands.settled().await;
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert_eq!(alive(&mark), 0);
        // At once, before anything stands.
        drop(
            tokio::time::timeout(Duration::ZERO, place.commands.run(within(60.0, format!("sleep {mark}")), None)).await,
        );
        place.commands.settled().await;
        assert_eq!(alive(&mark), 0);
    });
}

#[test]
fn output_is_cut_and_memory_stays_flat() {
    all(&settings(), async |place| {
        let before = peak();
        let request =
            CommandRequest { max_output_bytes: 10, ..within(60.0, "head -c 300000000 /dev/zero; echo é >&2") };
        let found = place.ask(request).await;
        assert_eq!(found.exit_code, 0);
        assert_eq!((found.stdout.as_str(), found.stdout_truncated), ("\0".repeat(10).as_str(), true));
        assert_eq!(found.stdout_truncated_bytes, 299_999_990);
        assert_eq!((found.stderr.as_str(), found.stderr_truncated, found.stderr_truncated_bytes), ("é\n", false, 0));
        let grown = peak() - before;
        assert!(grown < 20_000, "{grown} kB");
    });
}

/// The most memory that this process has ever held, in kB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_environment_is_the_commands_own() {
    all(&settings(), async |place| {
        let env = [("MINE", "a b\nc"), ("LD_PRELOAD", "/nowhere.so"), ("TERM", "vt100")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = CommandRequest { env: BTreeMap::from(env), ..within(20.0, "env 2>/dev/null") };
        let found = place.ask(request).await.stdout;
        let mut names: Vec<_> = found.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "LC_ALL", "LD_PRELOAD", "MINE", "PATH", "PWD", "TERM", "TMPDIR"], "{found}");
        assert!(found.contains("MINE=a b\nc\n") && found.contains("TERM=vt100\n") && found.contains("LANG=C.UTF-8\n"));
    });
}

#[test]
fn what_cannot_run_is_refused() {
    all(&settings(), async |place| {
        let code = async |request| place.commands.run(request, None).await.unwrap_err().code();
        assert_eq!(code(CommandRequest::new("a\0b")).await, "bad_params");
        for cwd in ["..", "/etc", "nowhere", "file", ".state"] {
            let request = CommandRequest { cwd: Some(cwd.to_owned()), ..CommandRequest::new("true") };
            assert_eq!(code(request).await, "invalid_cwd", "{cwd}");
        }
    });
}

#[test]
fn many_commands_run_at_once() {
    all(&settings(), async |place| {
        let results = (0..8).map(|number| {
            let commands = place.commands.clone();
            tokio::task::spawn(async move {
                commands.run(within(60.0, format!("sleep 0.2; echo {number} > $TMPDIR/t; cat $TMPDIR/t")), None).await
            })
        });
        for (number, result) in results.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(result.await.unwrap().unwrap().stdout, format!("{number}\n"));
        }
        leaves_nothing(&place);
    });
}

/// Nothing of the sandboxes is left in the machine's temporary folder.
fn leaves_nothing(place: &Place) {
    assert!(place.root.join("file").exists() && place.base.path().exists());
    let left = fs::read_dir("/tmp").unwrap().flatten().filter(|entry| {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).map(|then| then.elapsed());
        entry.file_name().to_string_lossy().starts_with("command-")
            && age.is_ok_and(|age| age.is_ok_and(|age| age > Duration::from_secs(30)))
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn what_is_not_there_refuses_every_command() {
    let base = tempfile::tempdir().unwrap();
    fs::create_dir(base.path().join(".state")).unwrap();
    let mut settings = settings();
    settings.program = "/no/such/program".into();
    let state = base.path().join(".state");
    for wanted in [Wanted::Bubblewrap, Wanted::Landlock, Wanted::Auto, Wanted::None] {
        let commands = probe::probe(wanted, base.path(), &state, settings.clone()).await;
        assert!(matches!(commands.kind(), Kind::Unavailable { .. }), "{wanted:?}: {}", commands.kind().words());
        let error = commands.run(CommandRequest::new("true"), None).await.unwrap_err();
        assert!(matches!(error, CommandError::SandboxUnavailable { .. }), "{error}");
    }
    settings.path = "/nowhere".to_owned();
    settings.program = env!("CARGO_BIN_EXE_switchboard").into();
    let commands = probe::probe(Wanted::Bubblewrap, base.path(), &state, settings.clone()).await;
    assert!(commands.kind().words().contains("bwrap is not in the path"), "{}", commands.kind().words());
    let commands = probe::probe(Wanted::Auto, base.path(), Path::new("/nowhere"), settings).await;
    assert!(matches!(commands.kind(), Kind::Unavailable { .. }), "without a state folder");
}

#[test]
fn a_command_runs_in_the_machines_network_only_where_that_is_allowed() {
    let open = switchboard::workspace::command::CommandSettings { network: true, ..settings() };
    for kind in super::kit::WALLS {
        one(kind, &open, async |place| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let found = place.run(&format!("bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'")).await;
            assert_eq!((found.exit_code, &*found.stderr), (0, ""));
        });
    }
}
