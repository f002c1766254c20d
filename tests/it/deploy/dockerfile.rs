//! Rules that the Dockerfile is held to. That its steps work is the matter of `image.rs`.

use super::text;

/// The instructions: word and rest, with lines that go on joined and comments left out.
fn instructions(dockerfile: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = dockerfile.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let words = joined.lines().filter_map(|line| line.trim().split_once(' '));
    words.map(|(word, rest)| (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// What is wrong with a Dockerfile, one line each.
fn mistakes(dockerfile: &str) -> Vec<String> {
    let all = instructions(dockerfile);
    let of = |word: &str| -> Vec<&str> {
        all.iter().filter(|(other, _)| other == word).map(|(_, rest)| rest.as_str()).collect()
    };
    let last_from = all.iter().rposition(|(word, _)| word == "FROM").unwrap_or(0);
    let last =
        |word: &str| all[last_from..].iter().rev().find(|(other, _)| other == word).map(|(_, rest)| rest.as_str());
    let mut wrong = Vec::new();
    let mut must = |good: bool, text: &str| {
        if !good {
            wrong.push(text.to_owned());
        }
    };

    let images: Vec<&str> = of("ARG")
        .into_iter()
        .filter_map(|arg| arg.split_once('='))
        .filter(|(_, v)| v.contains('/'))
        .map(|(_, v)| v)
        .collect();
    must(images.len() == 2, "both bases are arguments, so that a release can pin them by digest");
    for image in &images {
        let tag = image.rsplit('/').next().unwrap().split_once(':').map_or("", |(_, tag)| tag);
        must(!tag.is_empty() && !tag.starts_with("latest"), "every base has a tag that is not latest");
    }
    must(of("FROM").iter().all(|from| from.starts_with("${") || !from.contains(':')), "no base but the arguments");
    let is_exec = |rest: &str| rest.starts_with('[') && rest.ends_with(']');
    must(last("ENTRYPOINT").is_some_and(is_exec), "ENTRYPOINT in exec form: a shell would keep the signals");
    must(last("CMD").is_none_or(is_exec), "CMD in exec form");
    let health = last("HEALTHCHECK").and_then(|rest| rest.split_once("CMD ")).map(|(_, command)| command);
    must(health.is_some_and(is_exec), "HEALTHCHECK in exec form: there is no shell");
    must(
        health.is_some_and(|command| command.contains("\"healthcheck\"")),
        "HEALTHCHECK by our own command: there is no curl",
    );
    let user = last("USER").unwrap_or("root");
    let is_number = |part: &str| part.parse::<u32>().is_ok_and(|id| id >= 10_000);
    must(user.split(':').all(is_number), "USER is a number that is nobody on the host");
    must(last("STOPSIGNAL") == Some("SIGTERM"), "STOPSIGNAL is what the server drains on");
    must(
        last("EXPOSE").is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port >= 1024)),
        "EXPOSE above 1024: no capability is needed",
    );
    must(last("VOLUME") == Some("/data"), "the data has a volume");
    let is_last = |word: &str| all[last_from..].iter().any(|(other, _)| other == word);
    must(!is_last("RUN"), "the last stage has no shell to RUN anything");
    must(!all.iter().any(|(word, _)| word == "ADD"), "COPY, not ADD, which fetches and unpacks");
    let builds = of("RUN").into_iter().filter(|run| run.contains("cargo build"));
    let mut builds = builds.peekable();
    must(builds.peek().is_some(), "it is built here");
    for run in builds {
        must(run.contains("--locked"), "cargo builds what the lock file says");
        must(run.contains("--mount=type=cache"), "the registry is a cache, not a layer");
    }
    must(!of("RUN").iter().any(|run| run.contains("curl ") || run.contains("| sh")), "nothing is fetched but crates");
    for name in ["title", "description", "version", "revision"] {
        let label = format!("org.opencontainers.image.{name}=");
        must(last("LABEL").is_some_and(|labels| labels.contains(&label)), &format!("the label {name}"));
    }
    let secrets = ["SECRET", "PASSWORD", "TOKEN", "API_KEY"];
    let said = of("ENV").join(" ") + &of("ARG").join(" ");
    must(!secrets.iter().any(|word| said.contains(word)), "no secret in ENV or ARG, which every layer shows");
    must(of("COPY").iter().all(|copy| *copy != ". ." && *copy != ". ./"), "what is copied is named");
    wrong
}

#[test]
fn the_dockerfile_keeps_the_rules() {
    assert_eq!(mistakes(&text("Dockerfile")), [""; 0]);
}

#[test]
fn each_rule_can_be_broken() {
    let good = text("Dockerfile");
    let rows = [
        ("rust:1.95.0-bookworm", "rust:latest", "every base has a tag that is not latest"),
        ("rust:1.95.0-bookworm", "rust", "every base has a tag that is not latest"),
        (
            "ENTRYPOINT [\"/usr/local/bin/switchboard\"]",
            "ENTRYPOINT switchboard",
            "ENTRYPOINT in exec form: a shell would keep the signals",
        ),
        ("USER 65532:65532", "USER nonroot", "USER is a number that is nobody on the host"),
        ("USER 65532:65532", "", "USER is a number that is nobody on the host"),
        ("STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL", "STOPSIGNAL is what the server drains on"),
        ("EXPOSE 8080", "EXPOSE 80", "EXPOSE above 1024: no capability is needed"),
        (
            "--locked --bin switchboard \\\n    &&",
            "--bin switchboard \\\n    &&",
            "cargo builds what the lock file says",
        ),
        ("COPY src src", "COPY . .", "what is copied is named"),
        ("COPY src src", "ADD src src", "COPY, not ADD, which fetches and unpacks"),
        ("ARG VERSION=0.1.0", "ARG API_KEY=x", "no secret in ENV or ARG, which every layer shows"),
        ("VOLUME /data", "RUN true", "the data has a volume"),
    ];
    for (from, to, expected) in rows {
        assert!(good.contains(from), "{from}");
        let found = mistakes(&good.replacen(from, to, 1));
        assert!(found.iter().any(|wrong| wrong == expected), "{from:?} -> {to:?}: {found:?}");
    }
}

#[test]
fn the_image_is_built_with_the_toolchain_that_is_tested() {
    let toolchain = text("rust-toolchain.toml");
    let channel = toolchain.split("channel = \"").nth(1).unwrap().split('"').next().unwrap();
    let wanted = format!("docker.io/library/rust:{channel}-bookworm");
    assert!(text("Dockerfile").contains(&wanted), "{wanted}");
    let version = format!("ARG VERSION={}", env!("CARGO_PKG_VERSION"));
    assert!(text("Dockerfile").contains(&version), "{version}");
}

#[test]
fn only_what_the_build_reads_is_sent_to_it() {
    let ignored = text(".dockerignore");
    let (none, wanted): (Vec<&str>, Vec<&str>) = ignored.lines().partition(|line| !line.starts_with('!'));
    assert_eq!(none, ["*"]);
    let mut copied: Vec<String> = instructions(&text("Dockerfile"))
        .iter()
        .filter(|(word, rest)| word == "COPY" && !rest.starts_with("--"))
        .flat_map(|(_, rest)| rest.split(' ').map(str::to_owned).collect::<Vec<_>>().split_last().unwrap().1.to_vec())
        .collect();
    copied.sort();
    let mut allowed: Vec<&str> = wanted.iter().map(|line| &line[1..]).collect();
    allowed.sort_unstable();
    assert_eq!(copied, allowed);
}
