//! Wire protocols, pure: bytes become a `RunInput`, `AgentEvent`s become frames. One file per protocol.
