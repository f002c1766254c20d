//! `switchboard healthcheck`: one `GET /livez` over a plain socket, for images that have no curl.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the server may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why the server counts as not alive.
#[derive(Debug, thiserror::Error)]
pub enum Unhealthy {
    /// It cannot be reached, or does not answer.
    #[error("no answer from {address}")]
    NoAnswer {
        /// The address of the request.
        address: String,
        /// The cause.
        #[source]
        error: std::io::Error,
    },
    /// It answered with something else than 200.
    #[error("{address} answered {answer:?}")]
    NotOk {
        /// The address of the request.
        address: String,
        /// The answer's first line.
        answer: String,
    },
}

/// `Ok` when the server that is bound to `bind` answers `/livez` with 200.
///
/// # Errors
/// See [`Unhealthy`].
pub fn live(bind: &str) -> Result<(), Unhealthy> {
    let no_answer = |error| Unhealthy::NoAnswer { address: bind.to_owned(), error };
    let mut stream = connect(bind).map_err(no_answer)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(no_answer)?;
    let mut head = Vec::new();
    // The first line may come in pieces.
    while head.len() < 64 && !head.contains(&b'\n') {
        let mut piece = [0; 64];
        match stream.read(&mut piece).map_err(no_answer)? {
            0 => break,
            read => head.extend_from_slice(&piece[..read]),
        }
    }
    let answer = String::from_utf8_lossy(&head);
    let first_line = answer.lines().next().unwrap_or_default();
    match first_line.starts_with("HTTP/1.1 ") && first_line.split(' ').nth(1) == Some("200") {
        true => Ok(()),
        false => Err(Unhealthy::NotOk { address: bind.to_owned(), answer: first_line.to_owned() }),
    }
}

/// A connection to the first of the name's addresses that takes one: the server listens on one of them.
fn connect(bind: &str) -> io::Result<TcpStream> {
    let mut failure = io::ErrorKind::AddrNotAvailable.into();
    for address in bind.to_socket_addrs()? {
        match TcpStream::connect_timeout(&reachable(address), PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A server that listens on all addresses is called on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
