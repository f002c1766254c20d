//! No circles of imports: in each folder of `src`, files and folders that use each other in a circle cannot be read one
//! after the other. What a folder's own `mod.rs` has is everybody's there and makes none.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{none, sources};

type Module = Vec<String>;

/// The paths of a `use`, or of an expression, one for each name in braces.
fn paths(text: &str) -> Vec<Module> {
    let Some((before, inside)) = text.split_once('{') else {
        let plain = text.split(" as ").next().unwrap_or_default();
        return vec![plain.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()];
    };
    let head: Module = before.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let inside = inside.rsplit_once('}').map_or(inside, |(inside, _)| inside);
    let mut depth = 0;
    let parts = inside.split(|letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        letter == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(paths).map(|tail| [head.clone(), tail].concat()).collect()
}

/// What a source uses, as paths that begin with `crate`, `super` or `self`.
fn used(code: &str) -> Vec<Module> {
    let mut found = Vec::new();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == ':' || before == '_') {
                continue;
            }
            let is_use = code[..at].trim_end().ends_with("use");
            let end = match is_use {
                true => code[at..].find(';').unwrap_or(code.len() - at),
                false => code[at..]
                    .find(|letter: char| !(letter.is_alphanumeric() || letter == ':' || letter == '_'))
                    .unwrap_or(code.len() - at),
            };
            found.extend(paths(&code[at..at + end]));
        }
    }
    found
}

/// The path from the crate's root.
fn absolute(module: &Module, path: &[String]) -> Module {
    let mut from: Module = match path.first().map(String::as_str) {
        Some("crate") => Vec::new(),
        _ => module.clone(),
    };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(from.pop()),
            part => from.push(part.to_owned()),
        }
    }
    from
}

/// Who can be reached from `from`.
fn reached<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(at) = waiting.pop() {
        for next in graph.get(at).into_iter().flatten() {
            if found.insert(next.as_str()) {
                waiting.push(next);
            }
        }
    }
    found
}

#[test]
fn nobody_uses_each_other_in_a_circle() {
    let mut codes: BTreeMap<Module, String> = BTreeMap::new();
    for source in sources("src") {
        let path = source.path.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        if !path.ends_with("/tests") && path != "lib" && path != "main" {
            let code: Vec<&str> = source.code().take_while(|line| *line != "mod tests {").collect();
            codes.insert(path.split('/').map(str::to_owned).collect(), code.join("\n"));
        }
    }
    let mut folders: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, code) in &codes {
        for path in used(code) {
            let mut to = absolute(module, &path);
            while !to.is_empty() && !codes.contains_key(&to) {
                to.pop();
            }
            let same = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(here), Some(there)) = (module.get(same), to.get(same)) {
                let folder = folders.entry(module[..same].to_vec()).or_default();
                folder.entry(here.clone()).or_default().insert(there.clone());
            }
        }
    }
    assert!(folders.len() > 40, "sources are read as they are written: {}", folders.len());
    let mut circles = BTreeSet::new();
    for (folder, graph) in folders.iter().filter(|(folder, _)| !folder.is_empty()) {
        for module in graph.keys() {
            let circle: BTreeSet<&str> = reached(graph, module)
                .into_iter()
                .filter(|other| reached(graph, other).contains(module.as_str()))
                .collect();
            if circle.len() > 1 && circle.contains(module.as_str()) {
                let names: Vec<&str> = circle.into_iter().collect();
                circles.insert(format!("{}: {}", folder.join("/"), names.join(" ")));
            }
        }
    }
    none(circles.into_iter().collect());
}
