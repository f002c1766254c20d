//! A run's life apart from its connection.
