//! The product's HTTP surface.
