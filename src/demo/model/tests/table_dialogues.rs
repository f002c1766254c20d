//! Dialogues.
