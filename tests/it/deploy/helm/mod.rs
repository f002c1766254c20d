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
                // As Helm does: null takes a default away.
                base.retain(|_, value| !value.is_null());
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

/// The manifests that the chart makes of its values with some of them changed, by kind; `Service-metrics` is another of its kind.
fn manifests(changes: &Value) -> BTreeMap<String, Value> {
    rendered(changes).unwrap()
}

/// The same, or what the chart refuses the values for.
fn rendered(changes: &Value) -> Result<BTreeMap<String, Value>, String> {
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
        let rendered = renderer.render(&chart_file(&format!("templates/{name}")))?;
        if rendered.trim().is_empty() {
            continue;
        }
        let manifest = parse(&rendered);
        let kind = manifest["kind"].as_str().unwrap_or_else(|| panic!("{name}: {rendered}"));
        let part = manifest["metadata"]["name"].as_str().unwrap().strip_prefix("chat").unwrap();
        let kind = format!("{kind}{part}");
        assert_eq!(kind.to_ascii_lowercase() + ".yaml", name, "a file is named like its kind, and its part of it");
        found.insert(kind, manifest);
    }
    Ok(found)
}

fn everything() -> Value {
    json!({
        "configFolders": {"profiles": "chat-profiles", "prompts/desk": "chat-prompts-desk", "tools": "chat-tools"},
        "configFile": "chat-settings",
        "settings": {"OTEL_SERVICE_NAME": "chat", "HTTPS_PROXY": "http://proxy:3128"},
        "image": {"digest": format!("sha256:{}", "0".repeat(64))},
        "autoscaling": {"enabled": true, "activeStreams": 200},
        "metrics": {"enabled": true, "serviceMonitor": {"enabled": true}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "networkPolicy": {
            "ingressFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        },
    })
}

#[test]
fn the_manifests_are_those_that_the_values_ask_for() {
    let kinds = |changes: &Value| manifests(changes).into_keys().collect::<Vec<_>>();
    assert_eq!(kinds(&json!({})), ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]);
    let all = [
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "Service-metrics",
        "ServiceMonitor",
    ];
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
        assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
        let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
        let drain: u64 = values(&changes)["drainSeconds"].as_u64().unwrap();
        assert_eq!(pause, 5);
        assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > pause + drain + 5);
        let probes =
            ["startupProbe", "livenessProbe", "readinessProbe"].map(|probe| &container[probe]["httpGet"]["path"]);
        assert_eq!(probes, ["/livez", "/livez", "/readyz"]);
        let ready = &container["readinessProbe"];
        // `/readyz` takes up to five seconds to say what is wrong.
        assert_eq!((&ready["timeoutSeconds"], &ready["failureThreshold"]), (&json!(6), &json!(3)));
        let start = &container["startupProbe"];
        // A schema that is being changed is left the time for it.
        assert_eq!((&start["periodSeconds"], &start["failureThreshold"]), (&json!(1), &json!(600)));
        let mounted: Vec<_> =
            container["volumeMounts"].as_array().unwrap().iter().map(|mount| &mount["name"]).collect();
        let volumes: Vec<_> = pod["volumes"].as_array().unwrap().iter().map(|volume| &volume["name"]).collect();
        assert_eq!(mounted, volumes);
    }
}

#[test]
fn a_folder_of_files_is_a_config_map_at_its_place() {
    let pod = &manifests(&everything())["Deployment"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["args"], json!(["serve", "--config-dir", "/etc/switchboard"]));
    let map_of = |volume: &Value| {
        let volumes = pod["volumes"].as_array().unwrap();
        let said = volumes.iter().find(|said| &said["name"] == volume).unwrap();
        said["configMap"]["name"].clone()
    };
    let mounts = container["volumeMounts"].as_array().unwrap().iter();
    let of_files = mounts.filter(|mount| mount["mountPath"].as_str().unwrap().starts_with("/etc/switchboard"));
    let found: Vec<_> =
        of_files.map(|mount| json!([mount["mountPath"], mount["subPath"], map_of(&mount["name"])])).collect();
    let expected = [
        json!(["/etc/switchboard/profiles", null, "chat-profiles"]),
        json!(["/etc/switchboard/prompts/desk", null, "chat-prompts-desk"]),
        json!(["/etc/switchboard/tools", null, "chat-tools"]),
        json!(["/etc/switchboard/default.toml", "default.toml", "chat-settings"]),
    ];
    assert_eq!(found, expected);

    let (file, folder) = (json!({"configFile": "a"}), json!({"configFolders": {"tools": "a"}}));
    for (changes, has_args) in [(json!({}), false), (file, true), (folder, true)] {
        let args = &manifests(&changes)["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"];
        assert_eq!(!args.is_null(), has_args, "{changes}");
    }
}

#[test]
fn metrics_are_never_where_the_world_is() {
    let mut changes = everything();
    changes["service"] = json!({"type": "LoadBalancer"});
    let all = manifests(&changes);
    let ports = |service: &str| -> Vec<Value> {
        let said = all[service]["spec"]["ports"].as_array().unwrap();
        said.iter().map(|port| port["name"].clone()).collect()
    };
    assert_eq!((ports("Service"), ports("Service-metrics")), (vec![json!("http")], vec![json!("metrics")]));
    assert_eq!(all["Service-metrics"]["spec"]["type"], "ClusterIP");
    // What the alert rules call the job is what the label of the Service says.
    let label = all["ServiceMonitor"]["spec"]["jobLabel"].as_str().unwrap();
    assert_eq!(all["Service-metrics"]["metadata"]["labels"][label], "switchboard");
    assert!(text("docs/deploy/prometheus/alerts.yml").contains(r#"up{job="switchboard"}"#));
}

#[test]
fn values_that_contradict_each_other_are_refused_by_name() {
    let rows = [
        (json!({"drainSeconds": 60}), "graceSeconds must be longer than drainSeconds and preStopSeconds together"),
        (json!({"drainSeconds": 55}), "graceSeconds must be longer than drainSeconds and preStopSeconds together"),
        (json!({"metrics": {"serviceMonitor": {"enabled": true}}}), "metrics.serviceMonitor needs metrics.enabled"),
        (
            json!({"autoscaling": {"enabled": true, "activeStreams": 9}}),
            "autoscaling.activeStreams needs metrics.enabled",
        ),
    ];
    for (changes, expected) in rows {
        assert_eq!(rendered(&changes).err().as_deref(), Some(expected), "{changes}");
    }
    assert!(rendered(&json!({"drainSeconds": 54})).is_ok(), "one second is longer");
}

#[test]
fn what_a_pod_is_told_are_settings_that_the_server_starts_with() {
    let jwks = json!({
        "settings": {"SWITCHBOARD__AUTH__MODE": "jwks", "SWITCHBOARD__AUTH__ISSUER": "https://issuer.example",
            "SWITCHBOARD__AUTH__AUDIENCE": "switchboard", "SWITCHBOARD__EVENTS__URL": null},
        "secret": {"files": {"SWITCHBOARD__AUTH__HS256_SECRET": null, "SWITCHBOARD__EVENTS__URL": "events-url"}},
    });
    for changes in [json!({}), everything(), jwks] {
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
                    "events-url" => "redis://:pw@redis:6379/0",
                    _ => "0123456789abcdef0123456789abcdef",
                };
                let file = folder.path().join(key);
                std::fs::write(&file, secret).unwrap();
                (name.to_owned(), file.display().to_string())
            })
            .chain([("SWITCHBOARD_DEFAULT__SERVER__BIND".to_owned(), "0.0.0.0:8080".to_owned())])
            .collect();
        let loaded = Config::load(&Sources { env, ..Sources::default() });
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
    let who = |name: &str| json!([{"namespaceSelector": {"matchLabels": {"name": name}}}]);
    let expected = json!([
        {"ports": [{"port": "http", "protocol": "TCP"}], "from": who("ingress")},
        {"ports": [{"port": "metrics", "protocol": "TCP"}], "from": who("monitoring")},
    ]);
    assert_eq!(policy["ingress"], expected);

    let policy = &manifests(&json!({"networkPolicy": {"egress": []}}))["NetworkPolicy"]["spec"];
    assert_eq!(policy["egress"].as_array().unwrap().len(), 1, "DNS alone");
    assert_eq!(
        policy["ingress"],
        json!([{"ports": [{"port": "http", "protocol": "TCP"}]}]),
        "everybody, and no metrics"
    );
}

#[test]
fn selectors_find_the_pods() {
    let all = manifests(&everything());
    let labels = &all["Deployment"]["spec"]["template"]["metadata"]["labels"];
    let selectors = [
        &all["Deployment"]["spec"]["selector"]["matchLabels"],
        &all["Service"]["spec"]["selector"],
        &all["Service-metrics"]["spec"]["selector"],
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
        (json!({"settings": {"SWITCHBOARD__EVENTS__URL": "redis://:pw@h"}}), "a password in an address"),
        (json!({"settings": {"HTTPS_PROXY": "http://u:p@h"}}), "the same"),
        (json!({"settings": {"SWITCHBOARD__TELEMETRY__OTLP_HEADERS": "authorization=x"}}), "a key in a header"),
        (json!({"settings": {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=x"}}), "the same"),
        (json!({"settings": {"PATH": "/"}}), "no setting of ours"),
        (json!({"configFolders": {"profiles/more": "a"}}), "a folder that is never read"),
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
