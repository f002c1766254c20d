//! A web server for tests that says whatever a test makes it say, and counts who connects.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Writes the answer to a request for a path.
type Answer = dyn Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A server, until the process ends.
pub(super) struct Server {
    /// Where it is.
    pub(super) address: SocketAddr,
    /// How many have connected.
    connections: Arc<AtomicUsize>,
    /// The heads of all requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server on all addresses of this machine.
    pub(super) fn new(answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> Self {
        Self::at("0.0.0.0:0", answer)
    }

    /// A server at this address.
    pub(super) fn at(
        address: &str,
        answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (address, answer): (_, Arc<Answer>) = (listener.local_addr().unwrap(), Arc::new(answer));
        let (connections, heads) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let server = Self { address, connections: connections.clone(), heads: heads.clone() };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, heads) = (answer.clone(), heads.clone());
                thread::spawn(move || serve(stream, &*answer, &heads));
            }
        });
        server
    }

    /// How many have connected so far.
    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The heads of the requests so far.
    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its port.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }
}

/// Keeps the connection for more requests, as servers do, until an answer fails.
fn serve(mut stream: TcpStream, answer: &Answer, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            match reader.read_line(&mut head) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
        if answer(&path, &mut stream).is_err() {
            return;
        }
    }
}

/// Ends the connection without an answer.
pub(super) fn hang_up() -> std::io::Result<()> {
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

/// An answer with a body.
pub(super) fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)
}

/// An answer that sends elsewhere.
pub(super) fn send_to(stream: &mut TcpStream, location: &str) -> std::io::Result<()> {
    send(stream, "302 Found", &format!("location: {location}\r\n"), b"")
}
