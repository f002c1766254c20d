//! Commands from outside: the same tests for every sandbox of this machine.

mod basics;
mod bounds;
mod escapes;
mod kit;
mod server;
