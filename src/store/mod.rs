//! Where conversations, drafts and previews are kept.
