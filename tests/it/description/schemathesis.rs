//! Schemathesis on our API.
