//! What the tests speak: scripted servers on free ports, read strictly.

pub mod upstream;
