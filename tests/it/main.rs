//! The one integration test binary.

// The attribute is for clippy, which otherwise takes the helpers between the tests for code that must not panic.
#[cfg(test)]
mod store;
