# syntax=docker/dockerfile:1.19
# Build with Rust and a C compiler; run as an unprivileged user with nothing else in the image.
# `docs/deploy/image/rehearse` carries out every step of this file without a container daemon, and runs what comes out.

# A release pins both by digest: docs/deploy/README.md tells how. The second has no tags of versions, so a digest is its only pin.
ARG RUST=docker.io/library/rust:1.95.0-bookworm
ARG RUNTIME=gcr.io/distroless/cc-debian12:nonroot

# The dependencies' names and versions with empty sources: as long as those do not change, neither does the next stage.
FROM ${RUST} AS planner
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
RUN for path in src/lib.rs src/main.rs $(sed -n 's/^path *= *"\(.*\.rs\)"$/\1/p' Cargo.toml); do \
        mkdir -p "$(dirname "$path")" && echo 'fn main() {}' > "$path"; \
    done && : > src/lib.rs

FROM ${RUST} AS dependencies
WORKDIR /build
COPY --from=planner /build ./
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    cargo build --release --locked --bin switchboard

FROM dependencies AS build
COPY src src
COPY config config
# Newer than what was built of the empty sources.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    touch src/lib.rs src/main.rs && cargo build --release --locked --bin switchboard \
    && mkdir -p /rootfs/data && chmod g=u /rootfs/data && cp target/release/switchboard /rootfs/switchboard

FROM ${RUNTIME}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="switchboard" \
      org.opencontainers.image.description="One server that connects any front end to any language model and any REST backend" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# Of the group 0, which a container has that runs under any number, as at OpenShift.
COPY --from=build --chown=65532:0 /rootfs/data /data
COPY --from=build /rootfs/switchboard /usr/local/bin/switchboard
# A container is reached from outside, so `dev` identity, which hands out tokens, refuses to start here: set SWITCHBOARD__AUTH__MODE.
# These stand below a settings file, and below `SWITCHBOARD__SERVER__BIND` and the like.
ENV SWITCHBOARD_DEFAULT__SERVER__BIND=0.0.0.0:8080 \
    SWITCHBOARD_DEFAULT__STORE__URL=sqlite:///data/switchboard.db \
    SWITCHBOARD_DEFAULT__LOG__FORMAT=json
# Freed memory goes back to the system at once: after a rush the process is half as large. A request of 2 MB takes 1 ms more for it.
ENV MIMALLOC_PURGE_DELAY=0
# By number, so that `runAsNonRoot` can be checked without a look into the image.
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s --retries=3 CMD ["/usr/local/bin/switchboard", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/switchboard"]
CMD ["serve"]
