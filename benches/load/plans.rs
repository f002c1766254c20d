//! What plans cost: twenty steps beside the same calls in one turn, three slow steps beside one, what a sub-agent holds while
//! its model is asked, and a turn of a user with many plans that are kept.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::report::median;
use crate::server::{ON_ITS_CORE, Role, Server, data};
use crate::tls::Wire;
use crate::upstream::{SLOW, SLOW_PATH, Upstream};

/// Times that each is measured; the median is the figure.
const TIMES: usize = 7;

/// Runs of one measuring.
const RUNS: usize = 20;

/// Sub-agents at once.
const AGENTS: usize = 100;

/// Plans that one user keeps.
const KEPT: usize = 1_000;

const PROFILE: &str = r#"id = "planner"
context_type = "planner"
title = "Planner"
description = "Measures."
reply_language = "en"
instructions = ["bench/role.md"]
tools = ["list_items", "list_slowly"]
[plan]
tool = "create_plan"
"#;

const TOOL: &str = r#"[[tool]]
name = "list_slowly"
description = "Lists the items after a while."
samples = ["which items are there at last?"]
[tool.request]
path = "SLOW"
[tool.result]
projection = "items[].{id: id, name: name}"
"#;

/// What the model asks for in one turn.
#[derive(Debug, Clone, Copy)]
pub enum Asks {
    Calls(usize),
    /// A plan of so many steps, none of which needs another.
    Plan(usize),
    SlowPlan(usize),
    /// A plan that is kept, and not carried out.
    Draft(usize),
    /// A plan whose steps are sub-agents that wait for their model.
    Agents(usize),
}

impl Asks {
    /// The tool, its arguments as JSON, and how often it is called.
    pub fn of(self) -> (&'static str, String, usize) {
        let plan = |steps: usize, mode: &str, step: Value| {
            let objective = step["description"].clone();
            let steps: Vec<Value> = (0..steps).map(|_| step.clone()).collect();
            let plan = json!({"objective": objective, "execution_mode": mode, "plan": {"steps": steps}});
            ("create_plan", plan.to_string(), 1)
        };
        let calling = |tool: &str| json!({"type": "action", "description": "List the items", "tools": [tool]});
        match self {
            Self::Calls(times) => ("list_items", "{}".to_owned(), times),
            Self::Plan(steps) => plan(steps, "auto_execute", calling("list_items")),
            Self::SlowPlan(steps) => plan(steps, "auto_execute", calling("list_slowly")),
            Self::Draft(steps) => plan(steps, "draft_only", calling("list_items")),
            Self::Agents(steps) => {
                let step = json!({"type": "research", "description": "@hold@", "tools": ["list_items"], "executor_required": true});
                plan(steps, "auto_execute", step)
            }
        }
    }
}

/// Measures all of it.
pub async fn measure(upstream: &Upstream) {
    steps(upstream).await;
    agents(upstream).await;
}

async fn steps(upstream: &Upstream) {
    let bench = Bench::start(upstream, &[]);
    for kind in ["calls 20", "plan 20", "fast 1"] {
        bench.cpu_ms(kind).await;
    }
    let (mut of_calls, mut of_plan) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        of_calls.push(bench.cpu_ms("calls 20").await);
        of_plan.push(bench.cpu_ms("plan 20").await);
    }
    let (calls, plan) = (median(of_calls), median(of_plan));
    figure("20 calls in one turn: CPU", "ms", calls);
    figure("a plan of 20 steps: CPU", "ms", plan);
    figure("a plan of 20 steps: CPU beyond its calls", "ms", plan - calls);

    let (mut one, mut three) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        one.push(bench.ms("slow-plan 1").await);
        three.push(bench.ms("slow-plan 3").await);
    }
    figure(&format!("a plan of one step of {SLOW:?}"), "ms", median(one));
    figure("a plan of three of them at once", "ms", median(three));

    let mut before = Vec::new();
    for _ in 0..TIMES {
        before.push(bench.cpu_ms("fast 1").await);
    }
    for _ in 0..KEPT {
        bench.ask("draft 3").await;
    }
    let mut after = Vec::new();
    for _ in 0..TIMES {
        after.push(bench.cpu_ms("fast 1").await);
    }
    figure("a turn: CPU", "ms", median(before));
    figure(&format!("a turn of a user with {KEPT} plans that are kept: CPU"), "ms", median(after));
}

async fn agents(upstream: &Upstream) {
    let most = AGENTS.to_string();
    let bench = Bench::start(upstream, &[("PLANS__PARALLEL", &most), ("PLANS__MAX_STEPS", &most)]);
    for kind in ["calls 20", "plan 20", "fast 1"] {
        bench.cpu_ms(kind).await;
    }
    let before = bench.server.resident_kib();
    upstream.watch(Some(bench.server.pid()));
    let mut waiting = JoinSet::new();
    let request = bench.asking(&format!("agents {AGENTS}"));
    waiting.spawn(async move { request.send().await.unwrap().text().await });
    let mut asked = 0;
    // The model that makes the plan is asked too.
    while asked < AGENTS + 1 {
        tokio::time::sleep(Duration::from_millis(200)).await;
        asked += upstream.watch(Some(bench.server.pid())).len();
    }
    upstream.watch(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let held = (bench.server.resident_kib() - before) / AGENTS as f64;
    figure(&format!("one of {AGENTS} sub-agents that wait for their model: resident memory"), "KiB", held);
}

struct Bench {
    server: Server,
    http: reqwest::Client,
}

impl Bench {
    fn start(upstream: &Upstream, settings: &[(&str, &str)]) -> Self {
        let data = data();
        write(&data, "profiles/planner.toml", PROFILE);
        write(&data, "tools/planner.toml", &TOOL.replace("SLOW", SLOW_PATH));
        let server = Server::start_with(&ON_ITS_CORE, Role::Product, (upstream, Wire::Plain), &data, settings);
        Self { server, http: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    fn asking(&self, kind: &str) -> reqwest::RequestBuilder {
        let body = json!({"message": format!("@{kind}@"), "context_type": "planner"});
        let url = format!("http://{}/v1/agent/chat", self.server.address);
        self.http.post(url).bearer_auth(&self.server.token).json(&body)
    }

    /// A run in a conversation of its own, read to its end.
    async fn ask(&self, kind: &str) {
        let text = self.asking(kind).send().await.unwrap().text().await.unwrap();
        assert!(text.contains("event: message_complete") && !text.contains("\"failed\""), "{text}");
    }

    /// What a run of this kind takes of the server's CPU, in milliseconds.
    async fn cpu_ms(&self, kind: &str) -> f64 {
        let before = self.server.cpu_s();
        for _ in 0..RUNS {
            self.ask(kind).await;
        }
        (self.server.cpu_s() - before) * 1e3 / RUNS as f64
    }

    /// How long a run of this kind takes, in milliseconds.
    async fn ms(&self, kind: &str) -> f64 {
        let began = Instant::now();
        self.ask(kind).await;
        began.elapsed().as_secs_f64() * 1e3
    }
}

fn write(data: &Path, name: &str, text: &str) {
    let path = data.join("config").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn figure(name: &str, unit: &str, value: f64) {
    println!("figure {name}: {value:.1} {unit}");
}
