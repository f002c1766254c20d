//! The commands that end by themselves, and how they end.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use crate::support::process::Folder;

#[test]
fn check_config_says_that_all_is_well_and_leaves_no_trace() {
    let folder = Folder::new();
    let ended = folder.run(&["check-config"], &[]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "the configuration is good\n", ""));
    assert_eq!(folder.entries(), [""; 0], "no database, no secret");
}

#[test]
fn check_config_reports_settings_and_files_at_once() {
    let folder = Folder::new();
    folder.write("config/default.toml", "[runs]\nmax_turns = \"many\"\n[llm]\nprovider = \"gpt\"\n");
    folder.write("config/profiles/mine.toml", "id = 7");
    folder.write("config/tools/mine.json", "[");
    let settings = [("SERVER__BIND", "0.0.0.0:80"), ("AUTH__NOTHING", "x")];
    for command in ["check-config", "serve"] {
        let ended = folder.run(&[command], &settings);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{command}");
        let keys: Vec<_> = ended.stderr.lines().map(|line| line.split(": ").nth(1).unwrap()).collect();
        let expected = [
            "SWITCHBOARD__AUTH__NOTHING",
            "runs.max_turns",
            "server.bind",
            "llm.provider",
            "tools/mine.json:1",
            "profiles/mine.toml:1",
            "profiles/mine.toml:1",
        ];
        assert_eq!(keys, expected, "{command}: {}", ended.stderr);
        assert!(ended.stderr.lines().all(|line| line.starts_with("configuration: ")), "{}", ended.stderr);
    }
    assert_eq!(folder.entries(), ["config"], "a server with mistakes has made nothing");
}

#[test]
fn mistakes_on_the_command_line_end_with_two_and_failures_with_one() {
    let folder = Folder::new();
    folder.write("full", "x");
    folder.write("weak/dev-secret", "short\n");
    folder.write("bad.db", "this is no database, and it is long enough to be seen as something else");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = taken.local_addr().unwrap().to_string();
    let on_a_free_port = ("SERVER__BIND", "127.0.0.1:0");
    type Row<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], i32, &'a str);
    let in_use = format!("switchboard: cannot listen on {bind}: Address already in use (os error 98)");
    let rows: [Row<'_>; 20] = [
        (&["fly"], &[], 2, "unrecognized subcommand 'fly'"),
        (&["--fly"], &[], 2, "unexpected argument '--fly'"),
        (&["token"], &[], 2, "--user"),
        (&["token", "--user", ""], &[], 2, "--user"),
        (&["token", "--user", "u", "--ttl", "1y"], &[], 2, "must be a number and s, m, h or d"),
        (&["token", "--user", "u", "--ttl", "é"], &[], 2, "must be a number and s, m, h or d"),
        (&["token", "--user", "u"], &[("AUTH__MODE", "jwks")], 2, "auth.mode"),
        (&["token", "--user", "a\u{1f}b"], &[], 1, "no server with these settings accepts such a token"),
        (&["--config", "nowhere.toml"], &[], 2, "configuration: nowhere.toml: cannot be read"),
        (&["check-config", "--config-dir", "nowhere"], &[], 2, "configuration: nowhere: is not a folder"),
        (&["serve"], &[("SERVER__BIND", "0.0.0.0:0")], 2, "configuration: server.bind: auth.mode is \"dev\""),
        (
            &["serve"],
            &[("STORE__URL", "mysql://u:hunter2@db/x")],
            2,
            "configuration: store.url: must begin with sqlite: or postgres://",
        ),
        (
            &["serve"],
            &[on_a_free_port, ("STORE__URL", "postgres://u:hunter2@127.0.0.1:1/x")],
            1,
            "store: the store's database cannot be opened: error communicating with database: Connection refused",
        ),
        (
            &["check-config"],
            &[("STORE__URL", "postgres://u:hunter2@db/x?foo=1")],
            1,
            "store.url has a parameter that is not known",
        ),
        (
            &["check-config"],
            &[("EVENTS__URL", "redis://u:hunter2@127.0.0.1:notaport/0")],
            2,
            "configuration: events.url: cannot be understood",
        ),
        (
            &["check-config"],
            &[("METRICS__BIND", "127.0.0.1:8080"), ("SERVER__BIND", "127.0.0.1:8080")],
            2,
            "configuration: metrics.bind: is the address of server.bind",
        ),
        (&["serve"], &[("SERVER__BIND", &bind)], 1, &in_use),
        (&["serve"], &[on_a_free_port, ("STORE__URL", "sqlite://full/x.db")], 1, "File exists (os error 17)"),
        (&["serve"], &[on_a_free_port, ("STORE__URL", "sqlite://bad.db")], 1, "file is not a database"),
        (
            &["token", "--user", "u"],
            &[("AUTH__DEV_SECRET_FILE", "weak/dev-secret")],
            1,
            "weak/dev-secret cannot be used: it holds no secret; remove it, and a new one is made",
        ),
    ];
    for (args, settings, code, words) in rows {
        let ended = folder.run(args, settings);
        assert_eq!((ended.code, ended.stdout.as_str()), (code, ""), "{args:?} {settings:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?} {settings:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("hunter2") && !ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn the_secret_of_dev_mode_is_kept_where_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let token = folder.token(&["--user", "u", "--tenant", "t", "--role", "A", "--role", "B", "--ttl", "90s"]);
    assert_eq!(token.split('.').count(), 3);
    let path = folder.path().join("data/dev-secret");
    let secret = std::fs::read_to_string(&path).unwrap();
    assert!(secret.len() >= 32 && !token.contains(&secret));
    assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    let data = std::fs::read_dir(folder.path().join("data")).unwrap();
    assert_eq!(data.count(), 1, "nothing half-written is left");
}

#[test]
fn the_health_check_tells_a_live_server_from_everything_else() {
    let folder = Folder::new();
    let serving = folder.serve(&[]);
    let check = |bind: &str| folder.run(&["healthcheck"], &[("SERVER__BIND", bind)]);
    let ended = check(&serving.address);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
    let (_, port) = serving.address.split_once(':').unwrap();
    assert_eq!(check(&format!("localhost:{port}")).code, 0, "any address of the name will do");
    // A server on all addresses is asked on loopback; the mode is another, since dev listens on loopback only.
    let secret = "0123456789abcdef0123456789abcdef";
    let open = [("SERVER__BIND", &*format!("0.0.0.0:{port}")), ("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", secret)];
    assert_eq!(folder.run(&["healthcheck"], &open).code, 0);
    drop(serving);

    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let ended = check(&nobody);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with(&format!("switchboard: no answer from {nobody}: ")), "{}", ended.stderr);
    assert_eq!(check("nonsense").code, 2);

    let rows: [(&[&str], i32); 6] = [
        (&["HTTP/1.1 200 OK\r\n\r\n"], 0),
        (&["HTTP/", "1.1 200", " OK\r\n", "\r\n"], 0),
        (&["HTTP/1.1 503 Service Unavailable\r\n\r\n"], 1),
        (&["HTTP/1.1 2000\r\n\r\n"], 1),
        (&["SSH-2.0-OpenSSH\r\n"], 1),
        (&[], 1),
    ];
    for (pieces, code) in rows {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                stream.set_nodelay(true).unwrap();
                let mut request = [0; 1024];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /livez HTTP/1.1\r\n"));
                for piece in pieces {
                    // The client may have seen enough and be gone.
                    let _ = stream.write_all(piece.as_bytes());
                    std::thread::sleep(Duration::from_millis(30));
                }
            });
            assert_eq!(check(&address).code, code, "{pieces:?}");
        });
    }
}
