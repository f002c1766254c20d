//! Who is connected to, and who is not.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use super::fixture::{Server, hang_up, send, send_to};
use super::{LOCAL, LONG, code, fetcher, names, reaching};
use crate::bounded::client::system_lookup;

/// The listener takes all IPv4 addresses of this machine, and another one those of IPv6 where there are some.
#[tokio::test]
async fn nobody_is_connected_to_at_a_refused_address() {
    let server = Server::new(|_, stream| send(stream, "200 OK", "content-type: text/plain\r\n", b"secret"));
    let port = server.port();
    let has_v6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    let v6 = has_v6.then(|| Server::at(&format!("[::1]:{port}"), |_, stream| send(stream, "200 OK", "", b"secret")));
    let fetcher = fetcher("", LONG, &system_lookup());
    let hosts = [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.0.0.2",
        "127.255.255.254",
        "2130706433",
        "2130706433.",
        "0x7f000001",
        "0x7f.0.0.1",
        "0X7F.1",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0.01.",
        "127%2e0%2e0%2e1",
        "%31%32%37.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "0",
        "0.0.0.0",
        "0x0",
        "00000000000",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "loc\talhost",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "10.0.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "240.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::ffff:10.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:c0a8:101::]",
        "[2001:db8::1]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
    ];
    for host in hosts {
        for url in [format!("http://{host}:{port}/"), format!("https://{host}:{port}/")] {
            let fetched = fetcher.fetch(&url).await;
            let words = format!("{fetched:?}");
            assert_eq!(code(fetched), "forbidden_address", "{url}: {words}");
        }
    }
    let others = [
        format!("http://user@127.0.0.1:{port}/"),
        format!("http://:secret@localhost:{port}/"),
        format!("ftp://127.0.0.1:{port}/"),
        format!("gopher://localhost:{port}/"),
        format!("ws://127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("127.0.0.1:{port}"),
        "file:///etc/passwd".to_owned(),
        "data:text/plain,x".to_owned(),
        "http://".to_owned(),
        "http://127.0.0.1:99999/".to_owned(),
        "http://256.1.1.1/".to_owned(),
        "http://a b/".to_owned(),
        "".to_owned(),
        format!("http://localhost:{port}/{}", "x".repeat(10_000)),
    ];
    for url in others {
        assert_eq!(code(fetcher.fetch(&url).await), "bad_url", "{url}");
    }
    assert_eq!((server.connections(), v6.as_ref().map_or(0, Server::connections)), (0, 0));
    // The same listener does count those who are allowed.
    assert_eq!(reaching(&[&server]).fetch(&format!("http://127.1:{port}/")).await.unwrap().text, "secret");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_redirect_is_vetted_like_an_address() {
    let inside = Server::new(|_, stream| send(stream, "200 OK", "content-type: text/plain\r\n", b"secret"));
    let port = inside.port();
    let server = Server::new(move |path, stream| match path {
        "/address" => send_to(stream, &format!("http://127.0.0.1:{port}/")),
        "/spelled" => send_to(stream, &format!("//0x7f.1:{port}/")),
        "/name" => send_to(stream, &format!("http://inside.test:{port}/")),
        "/mixed" => send_to(stream, &format!("http://mixed.test:{port}/")),
        "/user" => send_to(stream, &format!("http://a@127.0.0.1:{port}/")),
        "/scheme" => send_to(stream, "file:///etc/passwd"),
        "/nonsense" => send_to(stream, "http://[/"),
        "/twice" => send_to(stream, "/address"),
        _ => send(stream, "404 Not Found", "", b""),
    });
    let public: &[IpAddr] = &["8.8.8.8".parse().unwrap(), LOCAL[0]];
    let (lookup, _) = names(&[("inside.test", &[LOCAL]), ("mixed.test", &[public])]);
    let fetcher = fetcher(&format!("127.0.0.1:{}", server.port()), LONG, &lookup);
    let rows = [
        ("/address", "forbidden_address"),
        ("/spelled", "forbidden_address"),
        ("/name", "forbidden_address"),
        ("/mixed", "forbidden_address"),
        ("/twice", "forbidden_address"),
        ("/user", "bad_url"),
        ("/scheme", "bad_url"),
        ("/nonsense", "bad_url"),
    ];
    for (path, expected) in rows {
        let fetched = fetcher.fetch(&format!("http://127.0.0.1:{}{path}", server.port())).await;
        let failure = fetched.unwrap_err();
        assert_eq!(failure.code(), expected, "{path}");
        assert!(failure.to_string().starts_with("the page redirects to"), "{failure}");
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_request() {
    let page = |words: &'static [u8]| {
        move |path: &str, stream: &mut std::net::TcpStream| match path {
            "/again" => send_to(stream, "/"),
            _ => send(stream, "200 OK", "content-type: text/plain\r\n", words),
        }
    };
    let first = Server::at("127.0.0.1:0", page(b"first"));
    let second = Server::at(&format!("127.0.0.2:{}", first.port()), page(b"second"));
    let there: &[IpAddr] = &[second.address.ip()];
    let (lookup, asked) = names(&[("flip.test", &[LOCAL, there])]);
    let fetcher = fetcher(&format!("flip.test:{}", first.port()), LONG, &lookup);
    let at = |path: &str| format!("http://flip.test:{}{path}", first.port());
    let page = fetcher.fetch(&at("/again")).await.unwrap();
    assert_eq!(page.text, "second", "the redirect is looked up anew");
    assert_eq!((first.connections(), second.connections()), (1, 1));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_name_that_turns_private_is_refused() {
    let server = Server::new(|_, stream| send(stream, "200 OK", "content-type: text/plain\r\n", b"secret"));
    let url = format!("http://flip.test:{}/", server.port());
    // Each request is vetted by its own answer alone, whatever was answered before.
    let (lookup, asked) = names(&[("flip.test", &[&[], LOCAL])]);
    let fetcher = fetcher("", LONG, &lookup);
    assert_eq!(code(fetcher.fetch(&url).await), "http_error", "there is no address");
    assert_eq!(code(fetcher.fetch(&url).await), "forbidden_address");
    assert_eq!((server.connections(), asked.load(Ordering::SeqCst)), (0, 2));
}

#[tokio::test]
async fn words_for_the_model_tell_no_address_that_was_found() {
    let server = Server::new(|_, _| hang_up());
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (lookup, _) = names(&[("inside.test", &[LOCAL]), ("up.test", &[LOCAL]), ("gone.test", &[LOCAL])]);
    let fetcher = fetcher(&format!("up.test:{},gone.test:{gone}", server.port()), LONG, &lookup);
    let rows = [
        ("http://inside.test/".to_owned(), "forbidden_address"),
        (format!("http://gone.test:{gone}/"), "http_error"),
        (format!("http://up.test:{}/", server.port()), "http_error"),
        (format!("https://up.test:{}/", server.port()), "http_error"),
    ];
    for (url, expected) in rows {
        let fetched = fetcher.fetch(&url).await;
        let failure = fetched.unwrap_err();
        assert_eq!(failure.code(), expected, "{url}: {failure}");
        let told = failure.to_string();
        assert!(!told.contains("127.") && !told.contains("::1") && !told.is_empty(), "{told}");
    }
}
