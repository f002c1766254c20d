//! The one integration test binary.

// `cfg(test)` tells clippy that helpers here are test code too, where `unwrap` is the way to fail.
#[cfg(test)]
mod providers;
#[cfg(test)]
mod support;
