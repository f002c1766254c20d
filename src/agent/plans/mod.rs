//! Plans before they are carried out: what a model asks for, read, checked and put into words. Pure; `turn/plans/` does
//! the work.

pub mod check;
pub mod mistakes;
pub mod read;
pub mod tools;
pub mod words;
