//! The files for compose: what they set are real settings, what they run is pinned and may do as little as it can.

use std::collections::BTreeMap;

use serde_json::Value;
use switchboard::config::{Config, Sources};

use super::{path, text};

fn files() -> [(&'static str, Value); 2] {
    ["solo", "scaled"].map(|name| (name, parse(&text(&format!("docs/deploy/compose/{name}.yaml")))))
}

/// A YAML document, with `<<` merged as compose does.
pub fn parse(yaml: &str) -> Value {
    let mut value: Value = serde_saphyr::from_str(yaml).unwrap_or_else(|error| panic!("{error}"));
    merge(&mut value);
    value
}

fn merge(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(base)) = map.remove("<<") {
                for (key, value) in base {
                    map.entry(key).or_insert(value);
                }
            }
            map.values_mut().for_each(merge);
        }
        Value::Array(items) => items.iter_mut().for_each(merge),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn services(file: &Value) -> impl Iterator<Item = (&String, &Value)> {
    file["services"].as_object().unwrap().iter()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(|word| word.as_str().unwrap()).collect()
}

/// The networks of a service, listed or with its address in each.
fn networks(service: &Value) -> Vec<&str> {
    let addressed = service["networks"].as_object().into_iter().flat_map(|networks| networks.keys());
    match &service["networks"] {
        Value::Object(_) => addressed.map(String::as_str).collect(),
        listed => words(listed),
    }
}

#[test]
fn each_file_names_all_that_its_services_use() {
    for (name, file) in files() {
        for (service, said) in services(&file) {
            for secret in words(&said["secrets"]) {
                assert!(file["secrets"][secret]["file"].is_string(), "{name} {service}: secret {secret}");
            }
            for network in networks(said) {
                assert!(file["networks"].as_object().unwrap().contains_key(network), "{name} {service}: {network}");
            }
            for volume in words(&said["volumes"]) {
                let source = volume.split(':').next().unwrap();
                let is_there = match source.strip_prefix("../") {
                    Some(file) => path("docs/deploy").join(file).is_file(),
                    None => file["volumes"].as_object().unwrap().contains_key(source),
                };
                assert!(is_there, "{name} {service}: volume {volume}");
            }
            for other in said["depends_on"].as_object().into_iter().flat_map(|others| others.keys()) {
                assert!(file["services"][other]["healthcheck"].is_object(), "{name} {service} waits for {other}");
            }
        }
    }
}

#[test]
fn what_is_set_are_settings_that_the_server_starts_with() {
    for (name, file) in files() {
        let ours = services(&file).filter(|(_, said)| said["image"].as_str().unwrap().starts_with("switchboard:"));
        let mut count = 0;
        for (service, said) in ours {
            count += 1;
            let folder = tempfile::tempdir().unwrap();
            let variables = said["environment"].as_object().unwrap().iter();
            let env: BTreeMap<String, String> = variables
                .map(|(key, value)| {
                    let value = value.as_str().unwrap_or_else(|| panic!("{name} {service}: {key} is quoted"));
                    let Some(secret) = value.strip_prefix("/run/secrets/") else {
                        return (key.clone(), value.to_owned());
                    };
                    assert!(words(&said["secrets"]).contains(&secret), "{name} {service}: {secret}");
                    let file = folder.path().join(secret);
                    let text = match secret {
                        "store-url" => "postgres://switchboard:pw@postgres:5432/switchboard\n",
                        _ => "0123456789abcdef0123456789abcdef\n",
                    };
                    std::fs::write(&file, text).unwrap();
                    (key.clone(), file.display().to_string())
                })
                // What the image says.
                .chain([("SWITCHBOARD_DEFAULT__SERVER__BIND".to_owned(), "0.0.0.0:8080".to_owned())])
                .collect();
            let loaded = Config::load(&Sources { env, ..Sources::default() });
            assert!(loaded.is_ok(), "{name} {service}: {:?}", loaded.err());
        }
        assert!(count > 0, "{name}");
    }
}

#[test]
fn no_secret_stands_in_a_file_or_a_variable() {
    for (name, file) in files() {
        for (service, said) in services(&file) {
            for (key, value) in said["environment"].as_object().into_iter().flatten() {
                let is_secret = ["SECRET", "PASSWORD", "KEY", "TOKEN"].iter().any(|word| key.contains(word));
                let is_file = key.ends_with("_FILE") && value.as_str().unwrap().starts_with("/run/secrets/");
                assert!(!is_secret || is_file, "{name} {service}: {key}");
            }
        }
    }
}

#[test]
fn every_container_may_do_as_little_as_it_can() {
    for (name, file) in files() {
        for (service, said) in services(&file) {
            let what = format!("{name} {service}");
            let tag = said["image"].as_str().unwrap().rsplit_once(':').unwrap().1;
            assert!(
                tag.split('.').count() >= 2 && tag.starts_with(|c: char| c.is_ascii_digit()),
                "{what}: an exact tag: {tag}"
            );
            assert_eq!(said["read_only"], true, "{what}");
            assert_eq!(words(&said["cap_drop"]), ["ALL"], "{what}");
            assert!(said["cap_add"].is_null() && said["privileged"].is_null(), "{what}");
            assert_eq!(words(&said["security_opt"]), ["no-new-privileges:true"], "{what}");
            for bound in ["mem_limit", "pids_limit", "healthcheck", "tmpfs", "restart"] {
                assert!(!said[bound].is_null(), "{what}: {bound}");
            }
            assert_eq!(said["healthcheck"]["test"][0], "CMD", "{what}: without a shell");
            let holds_streams = service == "nginx" || said["image"].as_str().unwrap().starts_with("switchboard:");
            assert!(!holds_streams || said["ulimits"]["nofile"] == 65536, "{what}: two descriptors for each stream");
            // nginx's image says itself that it is nobody.
            assert!(service == "nginx" || said["user"].as_str().unwrap() != "0:0", "{what}");
            for port in words(&said["ports"]) {
                assert!(port.starts_with("127.0.0.1:"), "{what}: {port} is open to everybody");
            }
            let grace = said["stop_grace_period"].as_str().unwrap_or("60s");
            let drain = said["environment"]["SWITCHBOARD__SERVER__DRAIN_S"].as_str().unwrap_or("0");
            let seconds = |text: &str| text.trim_end_matches('s').parse::<u64>().unwrap();
            assert!(seconds(grace) > seconds(drain) + 5, "{what}: {grace} is not enough to drain");
        }
    }
}

#[test]
fn two_replicas_are_alike_and_redis_forgets_only_what_may_go() {
    let [_, (_, scaled)] = files();
    let but_address = |name: &str| {
        let mut service = scaled["services"][name].clone();
        let address = service["networks"]["front"]["ipv4_address"].take();
        assert!(address.as_str().unwrap().starts_with("172.31.77."), "{name}: nginx asks for its address once");
        (service, address)
    };
    let [(one, first), (other, second)] = ["replica-1", "replica-2"].map(but_address);
    assert_eq!(one, other);
    assert_ne!(first, second);
    let redis = words(&scaled["services"]["redis"]["command"]).join(" ");
    for wanted in ["--maxmemory 256mb", "--maxmemory-policy volatile-ttl", "--appendonly no"] {
        assert!(redis.contains(wanted), "{redis}");
    }
    assert_eq!(scaled["networks"]["back"]["internal"], true);
    assert!(!networks(&scaled["services"]["nginx"]).contains(&"back"));
}
