//! The chart: its values fit its schema, its templates make the manifests that they should, and those let the server do as
//! little as it can. Helm itself is not needed here (`render.rs`), and where it is installed it has to agree.

mod render;

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use switchboard::config::{Config, Sources};

use super::compose::parse;
use super::{is_installed, path, text};
use render::Renderer;

const CHART: &str = "docs/deploy/helm/switchboard";

fn chart_file(name: &str) -> String {
    text(&format!("{CHART}/{name}"))
}

/// The chart's values with some of them changed.
fn values(changes: &Value) -> Value {
    fn over(base: &mut Value, changes: &Value) {
        match (base, changes) {
            (Value::Object(base), Value::Object(changes)) => {
                for (key, value) in changes {
                    over(base.entry(key).or_insert(Value::Null), value);
                }
            }
            (base, changes) => *base = changes.clone(),
        }
    }
    let mut values = parse(&chart_file("values.yaml"));
    over(&mut values, changes);
    values
}

/// What is wrong with values.
fn mistakes(values: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(&chart_file("values.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(values).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// The manifests that the chart makes of its values with some of them changed, by kind.
fn manifests(changes: &Value) -> BTreeMap<String, Value> {
    let values = values(changes);
    assert_eq!(mistakes(&values), [""; 0]);
    let chart = parse(&chart_file("Chart.yaml"));
    let named = json!({"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]});
    let root = json!({"Values": values, "Release": {"Name": "chat", "Service": "Helm"}, "Chart": named});
    let renderer = Renderer::new(root, &chart_file("templates/_helpers.tpl"));
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path(CHART).join("templates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".yaml") {
            continue;
        }
        let rendered = renderer.render(&chart_file(&format!("templates/{name}")));
        if rendered.trim().is_empty() {
            continue;
        }
        let manifest = parse(&rendered);
        let kind = manifest["kind"].as_str().unwrap_or_else(|| panic!("{name}: {rendered}")).to_owned();
        assert_eq!(kind.to_ascii_lowercase() + ".yaml", name, "a file is named like its kind");
        assert_eq!(manifest["metadata"]["name"], "chat", "{name}");
        found.insert(kind, manifest);
    }
    found
}

fn everything() -> Value {
    json!({
        "configFolder": "profiles",
        "image": {"digest": format!("sha256:{}", "0".repeat(64))},
        "autoscaling": {"enabled": true, "activeStreams": 200},
        "metrics": {"enabled": true, "serviceMonitor": {"enabled": true}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "networkPolicy": {"ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    })
}

#[test]
fn the_manifests_are_those_that_the_values_ask_for() {
    let kinds = |changes: &Value| manifests(changes).into_keys().collect::<Vec<_>>();
    assert_eq!(kinds(&json!({})), ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]);
    let all =
        ["Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceMonitor"];
    assert_eq!(kinds(&everything()), all);
    assert_eq!(kinds(&json!({"networkPolicy": {"enabled": false}})), ["Deployment", "PodDisruptionBudget", "Service"]);
}

#[test]
fn a_pod_may_do_as_little_as_it_can_and_has_the_time_to_drain() {
    for changes in [json!({}), everything()] {
        let deployment = &manifests(&changes)["Deployment"];
        assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"], json!({"maxUnavailable": 0, "maxSurge": 1}));
        let pod = &deployment["spec"]["template"]["spec"];
        let expected = json!({
            "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        assert_eq!(pod["securityContext"], expected);
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        let expected = json!({
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        });
        assert_eq!(container["securityContext"], expected);
        assert_eq!(container["resources"]["limits"]["memory"], "256Mi");
        let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
        let drain: u64 = values(&changes)["drainSeconds"].as_u64().unwrap();
        assert_eq!(pause, 5);
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > pause + drain + 5);
        let probes =
            ["startupProbe", "livenessProbe", "readinessProbe"].map(|probe| &container[probe]["httpGet"]["path"]);
        assert_eq!(probes, ["/livez", "/livez", "/readyz"]);
        let mounted: Vec<_> =
            container["volumeMounts"].as_array().unwrap().iter().map(|mount| &mount["name"]).collect();
        let volumes: Vec<_> = pod["volumes"].as_array().unwrap().iter().map(|volume| &volume["name"]).collect();
        assert_eq!(mounted, volumes);
    }
}

#[test]
fn what_a_pod_is_told_are_settings_that_the_server_starts_with() {
    for changes in [json!({}), everything()] {
        let deployment = &manifests(&changes)["Deployment"];
        let folder = tempfile::tempdir().unwrap();
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let env: BTreeMap<String, String> = container["env"]
            .as_array()
            .unwrap()
            .iter()
            .map(|variable| {
                let (name, value) = (variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
                let Some(key) = value.strip_prefix("/run/secrets/switchboard/") else {
                    return (name.to_owned(), value.to_owned());
                };
                let secret = match key {
                    "store-url" => "postgres://switchboard:pw@postgres/switchboard",
                    _ => "0123456789abcdef0123456789abcdef",
                };
                let file = folder.path().join(key);
                std::fs::write(&file, secret).unwrap();
                (name.to_owned(), file.display().to_string())
            })
            .chain([("SWITCHBOARD__SERVER__BIND".to_owned(), "0.0.0.0:8080".to_owned())])
            .collect();
        let loaded = Config::load(&Sources { file: None, dir: None, env });
        assert!(loaded.is_ok(), "{:?}", loaded.err());
    }
}

#[test]
fn what_leaves_a_pod_is_named_and_machines_are_out_of_reach() {
    let policy = &manifests(&everything())["NetworkPolicy"]["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    let egress = policy["egress"].as_array().unwrap();
    assert_eq!(egress[0], json!({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}));
    for rule in &egress[1..] {
        assert!(rule["ports"].is_array() && rule["to"].is_array(), "{rule}");
        let block = &rule["to"][0]["ipBlock"];
        let except: Vec<&str> =
            block["except"].as_array().into_iter().flatten().map(|cidr| cidr.as_str().unwrap()).collect();
        assert!(block.is_null() || except.contains(&"169.254.0.0/16"), "{rule}");
    }
    assert_eq!(policy["ingress"][0]["ports"].as_array().unwrap().len(), 2, "http and metrics");
}

#[test]
fn selectors_find_the_pods() {
    let all = manifests(&everything());
    let labels = &all["Deployment"]["spec"]["template"]["metadata"]["labels"];
    let selectors = [
        &all["Deployment"]["spec"]["selector"]["matchLabels"],
        &all["Service"]["spec"]["selector"],
        &all["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        &all["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ];
    for selector in selectors {
        assert_eq!(selector, labels);
    }
    assert!(all["Deployment"]["spec"]["replicas"].is_null(), "the autoscaler says how many");
    assert_eq!(all["HorizontalPodAutoscaler"]["spec"]["metrics"].as_array().unwrap().len(), 2);
}

#[test]
fn wrong_values_are_refused() {
    let rows = [
        (json!({"replica": 3}), "a name that is none"),
        (json!({"replicas": "2"}), "a text for a number"),
        (json!({"image": {"tag": "latest"}}), "an image that changes"),
        (json!({"image": {"digest": "abc"}}), "no digest"),
        (json!({"settings": {"SWITCHBOARD__AUTH__HS256_SECRET": "x"}}), "a secret among the settings"),
        (json!({"settings": {"SWITCHBOARD__STORE__URL": "postgres://u:p@h/d"}}), "a password among the settings"),
        (json!({"settings": {"PATH": "/"}}), "no setting of ours"),
        (json!({"settings": {"SWITCHBOARD__SERVER__DRAIN_S": 25}}), "a number that a manifest would not take"),
        (json!({"metrics": {"port": 80}}), "a port that needs a capability"),
        (json!({"networkPolicy": {"egress": [{"to": []}]}}), "a rule for all ports"),
    ];
    assert_eq!(mistakes(&values(&json!({}))), [""; 0]);
    for (changes, reason) in rows {
        assert_ne!(mistakes(&values(&changes)), [""; 0], "{reason}");
    }
}

#[test]
fn the_chart_is_of_this_version() {
    let chart = parse(&chart_file("Chart.yaml"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    assert_eq!(values(&json!({}))["image"]["tag"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn helm_itself_takes_the_chart() {
    if !is_installed("helm") {
        eprintln!("helm is not installed: the chart is rendered by the tests' own part of its language alone");
        return;
    }
    let chart = path(CHART);
    for args in [&["lint", "--strict"][..], &["template", "chat"]] {
        let output = Command::new("helm").args(args).arg(&chart).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
