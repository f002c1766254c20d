//! `switchboard healthcheck`: one `GET /livez` over a plain socket, for images that have no curl.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the server may take for each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why the server counts as not alive.
#[derive(Debug, thiserror::Error)]
pub enum Unhealthy {
    /// It cannot be reached, or does not answer.
    #[error("no answer from {address}: {error}")]
    NoAnswer {
        /// Where it was asked.
        address: String,
        /// What happened.
        #[source]
        error: std::io::Error,
    },
    /// It answered with something else than 200.
    #[error("{address} answered {answer:?}")]
    NotOk {
        /// Where it was asked.
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
    let mut addresses = bind.to_socket_addrs().map_err(no_answer)?;
    let address = addresses.next().ok_or_else(|| no_answer(std::io::ErrorKind::AddrNotAvailable.into()))?;
    let mut stream = TcpStream::connect_timeout(&reachable(address), PATIENCE).map_err(no_answer)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(no_answer)?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").map_err(no_answer)?;
    let mut head = [0; 64];
    let read = stream.read(&mut head).map_err(no_answer)?;
    let answer = String::from_utf8_lossy(&head[..read]);
    let first_line = answer.lines().next().unwrap_or_default();
    match first_line.starts_with("HTTP/1.1 200") {
        true => Ok(()),
        false => Err(Unhealthy::NotOk { address: bind.to_owned(), answer: first_line.to_owned() }),
    }
}

/// A server that listens on all addresses is asked on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
