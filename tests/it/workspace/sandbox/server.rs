//! The server's own end, and work as it is done every day.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use switchboard::workspace::command::Kind;
use switchboard::workspace::command::request::CommandRequest;

use crate::support::environment::skip_here;

use super::kit::{alive, all, mark, one, settings};

/// Names what the server below has to run.
const MARK: &str = "COMMAND_TEST_MARK";

/// Not a test by itself: a process that runs a command in each sandbox until it is killed.
#[test]
fn a_server_at_work() {
    let Some(mark) = std::env::var_os(MARK).and_then(|mark| mark.into_string().ok()) else {
        return;
    };
    let kind = match std::env::var_os("COMMAND_TEST_KIND").unwrap().to_str() {
        Some("bubblewrap") => Kind::Bubblewrap,
        Some("namespaces") => Kind::Landlock { namespaces: true },
        Some("landlock") => Kind::Landlock { namespaces: false },
        _ => Kind::None,
    };
    one(kind, &settings(), async |place| {
        let command = format!("setsid sleep {mark} & sleep {mark}");
        let request = CommandRequest { timeout: Duration::from_secs(60), ..CommandRequest::new(command) };
        place.commands.run(request, None).await.unwrap();
    });
}

#[test]
fn commands_die_with_the_server() {
    for (number, kind) in ["bubblewrap", "namespaces", "landlock", "none"].into_iter().enumerate() {
        let temp = tempfile::tempdir().unwrap();
        let mark = mark(30 + u32::try_from(number).unwrap());
        let mut server = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "workspace::sandbox::server::a_server_at_work", "--nocapture"])
            .env(MARK, &mark)
            // What the killed server leaves is tidied up here.
            .env("TMPDIR", temp.path())
            .env("COMMAND_TEST_KIND", kind)
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while alive(&mark) < 3 && server.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(20));
        }
        if server.try_wait().unwrap().is_some() {
            skip_here(&format!("{kind} does not work here"));
            continue;
        }
        assert!(alive(&mark) >= 3, "{kind}: the shell and both sleep");
        server.kill().unwrap();
        server.wait().unwrap();
        let begun = Instant::now();
        while alive(&mark) > 0 && begun.elapsed() < Duration::from_secs(60) {
            sleep(Duration::from_millis(10));
        }
        assert_eq!(alive(&mark), 0, "{kind}");
    }
}

#[test]
fn work_as_usual_goes_on() {
    all(&settings(), async |place| {
        let bare = place.commands.kind() == &Kind::Landlock { namespaces: false };
        fs::write(place.root.join(".git/config"), "[core]\n[user]\nname = me\nemail = me@example.org\n").unwrap();
        let table = [
            ("a look at the history", "git status --porcelain -uno; git branch --show-current", "main\n", true),
            ("a pipe", "seq 9 | sort -r | head -n 1", "9\n", true),
            ("a loop of processes", "for i in 1 2 3; do (echo $i) & wait; done", "1\n2\n3\n", true),
            ("renaming between folders", "echo x > sub/a && mv sub/a sub/deep/b && cat sub/deep/b", "x\n", true),
            ("modes", "echo 'echo run' > sub/s && chmod +x sub/s && sub/s", "run\n", !bare),
            (
                "a socket between processes",
                "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) && print 1'",
                "1",
                true,
            ),
            (
                "threads of node",
                "node -e 'require(\"fs\").readFile(\"file\", (e, d) => console.log(String(d)))'",
                "mine\n",
                true,
            ),
            ("the processor count", "nproc | grep -c .", "1\n", true),
        ];
        for (reason, command, stdout, works) in table {
            let program = command.split(' ').next().unwrap();
            if works && place.run(&format!("command -v {program}")).await.exit_code == 0 {
                let found = place.run(command).await;
                assert_eq!((found.exit_code, &*found.stdout), (0, stdout), "{reason}: {found:?}");
            }
        }
    });
}
