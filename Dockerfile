# syntax=docker/dockerfile:1
# Two stages: build with Rust and a C compiler, run as an unprivileged user with nothing else in the image.
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY Cargo.toml Cargo.lock ./
# The dependencies alone first, so that a change of our own code does not build them again.
RUN mkdir -p src benches tests/it config \
    && echo 'fn main() {}' | tee src/main.rs benches/stream.rs tests/it/main.rs > /dev/null \
    && touch src/lib.rs \
    && cargo build --release --locked --bin switchboard
COPY src src
COPY config config
RUN touch src/main.rs src/lib.rs && cargo build --release --locked --bin switchboard \
    && mkdir -p /rootfs/data && cp target/release/switchboard /rootfs/

FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build --chown=nonroot:nonroot /rootfs/data /data
COPY --from=build /rootfs/switchboard /usr/local/bin/switchboard
# A container is reached from outside, so `dev` identity, which hands out tokens, refuses to start here: set SWITCHBOARD__AUTH__MODE.
ENV SWITCHBOARD__SERVER__BIND=0.0.0.0:8080 \
    SWITCHBOARD__STORE__URL=sqlite:///data/switchboard.db \
    SWITCHBOARD__LOG__FORMAT=json
USER nonroot
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=5s CMD ["switchboard", "healthcheck"]
ENTRYPOINT ["switchboard"]
