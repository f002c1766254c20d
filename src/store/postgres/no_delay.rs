//! What is written to the database is sent at once.
//!
//! sqlx 0.9.0 opens its sockets without `TCP_NODELAY` and shows them to nobody (transact-rs/sqlx, issue 4335; mended by 4336, which
//! is not in a release yet). Over TLS a statement of more than 16 KiB is two records, and the second one then waits for the
//! other side's acknowledgement of the first, which takes up to 40 ms. So the option is set on the sockets of this process whose
//! other end is the database's port. This file goes when a release of sqlx sets it.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, getpeername, sendmsg};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg, sockopt};

/// Sets the option on every socket of this process whose other end has this port. Blocks for a microsecond or two for each open
/// descriptor.
///
/// # Errors
/// When the system does not list the descriptors, or does not let a socket be shared or set.
pub(super) fn send_at_once(port: u16) -> io::Result<()> {
    let mut done = Ok(());
    for entry in fs::read_dir("/proc/self/fd")? {
        let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if peer_port(number) == Some(port) {
            // The others are set also where one was closed meanwhile.
            done = done.and(shared(number).and_then(|socket| Ok(sockopt::set_tcp_nodelay(socket, true)?)));
        }
    }
    done
}

/// The port of the other end, for a connected TCP socket.
fn peer_port(number: RawFd) -> Option<u16> {
    let peer: SockaddrStorage = getpeername(number).ok()?;
    peer.as_sockaddr_in().map(|peer| peer.port()).or_else(|| peer.as_sockaddr_in6().map(|peer| peer.port()))
}

/// Another descriptor of the same socket. A number alone is nobody's: it is sent to ourselves, as one process hands a descriptor to
/// another, and what arrives is owned.
fn shared(number: RawFd) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let (byte, handed) = ([IoSlice::new(&[0])], [ControlMessage::ScmRights(&[number])]);
    sendmsg::<()>(ours.as_raw_fd(), &byte, &handed, MsgFlags::empty(), None)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut arrived = RecvAncillaryBuffer::new(&mut space);
    recvmsg(&theirs, &mut [IoSliceMut::new(&mut [0])], &mut arrived, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = arrived.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptor.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn sockets_of_that_port_send_at_once_and_no_others() {
        let [database, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let connected = |listener: &TcpListener| TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (first, second, elsewhere) = (connected(&database), connected(&database), connected(&other));
        assert!(![&first, &second, &elsewhere].iter().any(|socket| socket.nodelay().unwrap()), "not by itself");
        send_at_once(port(&database)).unwrap();
        assert_eq!([&first, &second, &elsewhere].map(|socket| socket.nodelay().unwrap()), [true, true, false]);
    }
}
