//! The socket that a step is started with as its standard input.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::workspace::command::spec::Spec;

/// Most bytes of an order; the server checks what goes into it.
const ORDER: usize = 8 << 20;

/// The socket, and what was ordered. The standard input is empty from here on.
pub(super) fn take() -> io::Result<(UnixStream, Spec)> {
    // Out of the way of what the command is given, and closed where it begins.
    let own = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?;
    let empty = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&empty)?;
    let mut socket = UnixStream::from(own);
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > ORDER {
        return Err(io::Error::other("the order is too long"));
    }
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    let spec = Spec::parse(&body).ok_or_else(|| io::Error::other("not an order"))?;
    Ok((socket, spec))
}

/// Sends bytes, a file along with the first of them.
pub(super) fn send_with(socket: &UnixStream, bytes: &[u8], file: Option<&OwnedFd>) -> io::Result<()> {
    let Some(file) = file else {
        return (&*socket).write_all(bytes);
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let files: [BorrowedFd<'_>; 1] = [file.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Closes every file but the standard ones: what the server, or `bwrap`, left open by mistake is nobody's here.
pub(super) fn close_inherited() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        if let Some(number) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
            && number > 2
        {
            open.push(number);
        }
    }
    for number in open {
        // The folder that was read is among them, and closed already.
        let _ = nix::unistd::close(number);
    }
    Ok(())
}
