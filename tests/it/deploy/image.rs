//! The image without a container daemon: its file tree, run under bubblewrap as strictly as the compose files and the chart
//! run it (`docs/deploy/image/rehearse`). The short form has the debug binary in it; the long one (`SWITCHBOARD_TEST_LONG=1`)
//! carries out every step of the Dockerfile and measures what comes out.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{free_port, is_installed, path};
use crate::support::environment::{is_long, skip};
use crate::support::frames;
use crate::support::process::Folder;
use crate::support::wait::eventually;

/// Bytes of the whole image at most, and of the binary alone.
const IMAGE_BYTES: u64 = 60_000_000;
const BINARY_BYTES: u64 = 30_000_000;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// A tree and its data.
struct Image(TempDir);

impl Image {
    fn rehearse(&self, command: &str) -> Command {
        let mut rehearse = Command::new(path("docs/deploy/image/rehearse"));
        rehearse.arg(command).arg(self.0.path()).stdin(Stdio::null());
        rehearse
    }

    /// The tree around the binary of the tests, or the one that the Dockerfile makes; `None` where it cannot be run.
    fn new() -> Option<Self> {
        for program in ["bwrap", "python3", "dpkg"] {
            if !is_installed(program) {
                skip(&format!("{program} is not installed"));
                return None;
            }
        }
        let image = Self(tempfile::tempdir().unwrap());
        // Whoever the image's user is on this machine has to get there.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(image.0.path(), open).unwrap();
        let made = match is_long() {
            true => image.rehearse("build").output(),
            false => image.rehearse("tree").arg(env!("CARGO_BIN_EXE_switchboard")).output(),
        };
        good(&made.unwrap());
        let tried = image.rehearse("exec").args(["--", "/usr/local/bin/switchboard", "--help"]).output().unwrap();
        if !tried.status.success() && String::from_utf8_lossy(&tried.stderr).contains("bwrap: ") {
            skip(&format!("bubblewrap makes no sandbox here: {}", String::from_utf8_lossy(&tried.stderr)));
            return None;
        }
        good(&tried);
        Some(image)
    }

    fn sizes(&self) -> (u64, u64) {
        let sizes: Value = serde_json::from_str(&good(&self.rehearse("measure").output().unwrap())).unwrap();
        (sizes["image"].as_u64().unwrap(), sizes["binary"].as_u64().unwrap())
    }

    /// What the kernel says of the process in the container.
    fn status(&self, key: &str) -> String {
        let id = std::fs::read_to_string(self.0.path().join("pid")).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{key}:")));
        line.unwrap_or_else(|| panic!("no {key} in {status}")).split_whitespace().next().unwrap().to_owned()
    }
}

fn good(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// The settings that a container is given, the port aside that all share here.
fn settings(port: u16) -> Vec<String> {
    let settings = [
        ("SERVER__BIND", format!("127.0.0.1:{port}")),
        ("AUTH__MODE", "hs256".to_owned()),
        ("AUTH__HS256_SECRET", SECRET.to_owned()),
        ("LLM__PROVIDER", "demo".to_owned()),
    ];
    settings.iter().flat_map(|(key, value)| ["-e".to_owned(), format!("SWITCHBOARD__{key}={value}")]).collect()
}

/// A container that is killed when this is dropped.
struct Container(Child);

impl Drop for Container {
    fn drop(&mut self) {
        // It has ended, unless the test has failed; then what it runs ends with it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_image_starts_answers_and_drains_with_nothing_but_its_data_to_write_to() {
    let Some(image) = Image::new() else { return };
    let port = free_port();
    let mut run = image.rehearse("run");
    let mut container =
        Container(run.args(settings(port)).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(container.0.stdout.take().unwrap()).lines();
    let greeting = lines.next().unwrap().unwrap();
    assert!(greeting.starts_with(&format!("switchboard listening on http://127.0.0.1:{port} ")), "{greeting}");

    let (as_root, root) = (image.status("Uid"), "0".to_owned());
    assert_ne!(as_root, root);
    let limits = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|set| image.status(set));
    assert_eq!(limits, ["0000000000000000"; 5].map(str::to_owned));
    assert_eq!(image.status("NoNewPrivs"), "1");

    let check =
        |command: &[&str], port| image.rehearse("exec").args(settings(port)).arg("--").args(command).output().unwrap();
    let health = ["/usr/local/bin/switchboard", "healthcheck"];
    assert_eq!(check(&health, port).status.code(), Some(0));
    assert_eq!(check(&health, free_port()).status.code(), Some(1), "nobody is there");
    let no_shell = check(&["/bin/sh", "-c", "true"], port);
    assert_ne!(no_shell.status.code(), Some(0), "the image has no shell");

    let token = Folder::new()
        .token_with(&["--user", "u", "--role", "USER"], &[("AUTH__MODE", "hs256"), ("AUTH__HS256_SECRET", SECRET)]);
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    assert_eq!(http.get(url("/readyz")).send().await.unwrap().status(), 200);
    let body = json!({"message": "What does this workflow do?", "context_type": "workflow", "conversation_id": "c"});
    let response = http.post(url("/v1/agent/chat")).bearer_auth(&token).json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let frames = frames::parse(&response.text().await.unwrap());
    assert_eq!(frames::names(&frames).last(), Some(&"message_complete"));

    let peak_kib: u64 = image.status("VmHWM").parse().unwrap();
    assert!(peak_kib < 256 << 10, "{peak_kib} KiB");
    let id = container.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let code = eventually("the container ends", async || container.0.try_wait().unwrap()).await;
    assert_eq!(code.code(), Some(0));
    assert!(image.0.path().join("data/switchboard.db").is_file(), "the data stays on its volume");
    assert!(!written(&image.0.path().join("tree")), "nothing else was written");
    if is_long() {
        let (image, binary) = image.sizes();
        eprintln!("image {image} bytes, binary {binary} bytes, peak memory {peak_kib} KiB");
        assert!(image <= IMAGE_BYTES && binary <= BINARY_BYTES, "image {image}, binary {binary}");
    }
}

/// Whether a run has left something in the tree where programs usually write.
fn written(tree: &Path) -> bool {
    ["tmp", "data", "home/nonroot", "var"].iter().any(|folder| {
        let entries = std::fs::read_dir(tree.join(folder)).into_iter().flatten();
        entries.flatten().any(|entry| entry.path().is_file())
    })
}

#[test]
fn what_the_image_needs_beside_the_binary_leaves_room_for_it() {
    let Some(image) = Image::new() else { return };
    let (whole, binary) = image.sizes();
    let base = whole - binary;
    assert!(base + BINARY_BYTES <= IMAGE_BYTES, "the base alone has {base} bytes");
}
