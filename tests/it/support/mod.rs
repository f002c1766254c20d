//! What the tests speak: the whole product on a free port, scripted models, and event streams read strictly.

pub mod app;
pub mod backend;
pub mod checks;
pub mod conformance;
pub mod converse;
pub mod environment;
pub mod faultproxy;
pub mod frames;
pub mod model;
pub mod node;
pub mod postgres;
pub mod process;
pub mod python;
pub mod redis;
pub mod response;
pub mod s3;
pub mod said;
pub mod sigv4;
pub mod sqlite;
pub mod tickets;
pub mod upstream;
pub mod wait;
pub mod whole;
