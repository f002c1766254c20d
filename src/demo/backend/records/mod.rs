//! What the demo knows, and what is right about it: plain data, which knows of no request and no answer.

pub mod action_types;
pub mod alerts;
pub mod all;
pub mod answers;
pub mod catalog;
pub mod fields;
pub mod forum;
pub mod ontology;
pub mod packages;
pub mod people;
pub mod reference;
pub mod research;
pub mod rules;
pub mod seed;
pub mod stamp;
pub mod tables;
