//! Configuration: defaults, then a file, then the environment.
