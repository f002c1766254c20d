//! The tools at the boundary: a chat request goes in as HTTP bytes, and what the model reads and the client sees is
//! checked.

mod data;
mod openapi;
mod rest;
mod tables;
mod workflow;
