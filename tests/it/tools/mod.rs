//! The tools at the boundary: a chat request goes in as HTTP bytes, and what the model reads and the client sees is
//! checked.

mod data;
pub mod mcp;
mod one_file;
mod openapi;
pub mod rest;
mod selection;
mod tables;
mod web;
pub mod workflow;
