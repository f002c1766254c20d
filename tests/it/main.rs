//! The one integration test binary.
#[cfg(test)]
mod demo_backend;

fn main() {}
