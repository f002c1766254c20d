//! The official clients against the running product: what their subscribers and their threads have seen.
