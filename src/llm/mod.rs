//! Language model providers over HTTP streaming: one folder per vendor, each a typed wire and a pure fold.
