//! What the dependencies are held to, from what is really built into the binary: `.deny.toml` is read here too, so that it
//! is kept without `cargo deny`, which takes long to install. And the bill of materials that a release ships.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use super::{path, text};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A crate that is built into the binary: name, version, licence.
type Built = (String, String, String);

/// Every crate that is built into the binary but our own.
fn built() -> BTreeSet<Built> {
    let format = ["--prefix", "none", "--format", "{p}|{l}"];
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build", "--target", TARGET])
        .args(format)
        .current_dir(path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates = text.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let (package, licence) = line.split_once('|').unwrap();
        let mut words = package.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap().trim_start_matches('v'));
        (name.to_owned(), version.to_owned(), licence.trim_end_matches(" (*)").to_owned())
    });
    crates.filter(|(name, ..)| name != env!("CARGO_PKG_NAME")).collect()
}

fn deny() -> toml::Table {
    text(".deny.toml").parse().unwrap()
}

fn strings(value: &toml::Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Whether the allowed licences are enough for an expression (SPDX, and the older `/` for "or").
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (holds, rest) = any(&words, allowed);
    assert!(rest.is_empty(), "{expression}: {rest:?} is left");
    holds
}

fn any<'a, 'b>(words: &'b [&'a str], allowed: &[&str]) -> (bool, &'b [&'a str]) {
    let (mut holds, mut rest) = all(words, allowed);
    while let Some(after) = rest.strip_prefix(&["OR"]) {
        let (other, after) = all(after, allowed);
        (holds, rest) = (holds || other, after);
    }
    (holds, rest)
}

fn all<'a, 'b>(words: &'b [&'a str], allowed: &[&str]) -> (bool, &'b [&'a str]) {
    let (mut holds, mut rest) = one(words, allowed);
    while let Some(after) = rest.strip_prefix(&["AND"]) {
        let (other, after) = one(after, allowed);
        (holds, rest) = (holds && other, after);
    }
    (holds, rest)
}

fn one<'a, 'b>(words: &'b [&'a str], allowed: &[&str]) -> (bool, &'b [&'a str]) {
    match words {
        ["(", inner @ ..] => {
            let (holds, rest) = any(inner, allowed);
            (holds, rest.strip_prefix(&[")"]).expect("a bracket closes"))
        }
        [licence, "WITH", exception, rest @ ..] => (allowed.contains(&&*format!("{licence} WITH {exception}")), rest),
        [licence, rest @ ..] => (allowed.contains(licence), rest),
        [] => panic!("an expression ends too early"),
    }
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
    let rows = [
        ("MIT", true, "one"),
        ("GPL-3.0", false, "another one"),
        ("GPL-3.0 OR MIT", true, "a choice"),
        ("Apache-2.0/MIT", true, "a choice as it was written once"),
        ("MIT AND GPL-3.0", false, "both"),
        ("MIT AND (GPL-3.0 OR ISC)", true, "brackets"),
        ("GPL-3.0 OR MIT AND GPL-2.0", false, "and binds closer"),
        ("Apache-2.0 WITH LLVM-exception", true, "an exception that is allowed"),
        ("MIT WITH LLVM-exception", false, "and another licence with it"),
    ];
    for (expression, expected, reason) in rows {
        assert_eq!(is_allowed(expression, &allowed), expected, "{reason}: {expression}");
    }
}

#[test]
fn every_crate_that_is_built_in_has_a_licence_that_is_allowed() {
    let deny = deny();
    let allowed = strings(&deny["licenses"]["allow"]);
    let wrong: Vec<Built> = built().into_iter().filter(|(.., licence)| !is_allowed(licence, &allowed)).collect();
    assert_eq!(wrong, []);
}

#[test]
fn no_crate_that_is_banned_is_built_in_and_what_we_speak_with_others_is_there_once() {
    let (deny, built) = (deny(), built());
    let names: Vec<&str> = built.iter().map(|(name, ..)| name.as_str()).collect();
    let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
    names.iter().for_each(|name| *counted.entry(name).or_default() += 1);
    for ban in deny["bans"]["deny"].as_array().unwrap() {
        let name = ban["crate"].as_str().unwrap();
        assert!(ban.get("reason").is_some(), "{name}: no reason");
        let most = usize::from(ban.get("deny-multiple-versions").is_some());
        assert!(counted.get(name).copied().unwrap_or(0) <= most, "{name}: {}", ban["reason"]);
    }
    for wanted in ["tokio", "rustls", "aws-lc-rs"] {
        assert!(names.contains(&wanted), "{wanted}: what is looked at is not what is built");
    }
}

#[test]
fn every_crate_comes_from_the_one_registry_with_a_digest() {
    let deny = deny();
    let registry = format!("registry+{}", strings(&deny["sources"]["allow-registry"])[0]);
    assert_eq!(strings(&deny["sources"]["allow-git"]), [""; 0]);
    let lock: toml::Table = text("Cargo.lock").parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if name == env!("CARGO_PKG_NAME") {
            continue;
        }
        assert_eq!(package.get("source").and_then(toml::Value::as_str), Some(&*registry), "{name}");
        assert!(package.get("checksum").is_some(), "{name}: no digest");
    }
}

#[test]
fn the_bill_of_materials_names_everything_that_is_built_in() {
    let make = || Command::new(path("docs/deploy/sbom")).arg(TARGET).output().unwrap();
    let output = make();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout, make().stdout, "the same tree gives the same bill");
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let said = bill["components"].as_array().unwrap();
    let (crates, libraries): (Vec<_>, Vec<_>) =
        said.iter().partition(|component| component["purl"].as_str().unwrap().starts_with("pkg:cargo/"));
    let text_of = |component: &Value, key: &str| component[key].as_str().unwrap().to_owned();
    let named: BTreeSet<_> = crates.iter().map(|c| (text_of(c, "name"), text_of(c, "version"))).collect();
    let expected: BTreeSet<_> = built().into_iter().map(|(name, version, _)| (name, version)).collect();
    assert_eq!(named, expected);
    let of_page: Vec<_> = libraries.iter().map(|library| text_of(library, "name")).collect();
    let vendored = ["src/page/vendor", "src/api_page/vendor"].map(|folder| std::fs::read_dir(path(folder)).unwrap());
    let folders = vendored.into_iter().flatten();
    let count = folders.filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(of_page.len(), count, "{of_page:?}");
    assert!(of_page.contains(&"swagger-ui-dist".to_owned()), "{of_page:?}");
    let references: BTreeSet<_> = said.iter().map(|component| text_of(component, "bom-ref")).collect();
    assert_eq!(references.len(), said.len(), "each is there once");
    for component in said {
        let hashes = component["hashes"].as_array().unwrap();
        assert!(!hashes.is_empty(), "{component}");
        assert!(hashes.iter().all(|hash| hash["content"].as_str().unwrap().len() == 64), "{component}");
        assert!(!component["licenses"][0]["expression"].as_str().unwrap().is_empty(), "{component}");
    }
    for dependency in bill["dependencies"].as_array().unwrap() {
        for needed in dependency["dependsOn"].as_array().unwrap() {
            assert!(references.contains(needed.as_str().unwrap()), "{needed}");
        }
    }
}
