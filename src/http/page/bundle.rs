//! The page's modules put together, so that a browser that is far away asks once: all that it needs at first is one script and
//! one style sheet, and what is loaded when it is needed is one script each. Nothing but this server makes them, when it starts.
//!
//! It reads the modules of our own style and of `vendor/`, and no others: an `import` is one line, names its bindings and a
//! relative path; an `export` stands in front of a declaration, or, in `vendor/`, as a list at the end. Each module becomes a
//! function that gives its exports, which is called once, when its first reader asks for it. Ours are sent without their comments
//! and indentation: no text in them goes over a line.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The module that the page begins with. Its bundle has its name.
const ENTRY: &str = "app.js";

/// The style sheet that the others are appended to.
const STYLE: &str = "style.css";

/// The style sheets that come with it, in this order.
const STYLES: [&str; 3] = ["drawings.css", "changes.css", "library.css"];

/// What every bundle begins with: the modules by their names, each made when it is first asked for, and those that come with
/// another bundle, which adds what is not there yet.
const HEAD: &str = "const $made = Object.create(null), $known = Object.create(null);\n\
     const $ = (name) => ($made[name] ??= $known[name]());\n\
     export const $define = (name, make) => { $known[name] ??= () => make($, $import); };\n\
     const $import = (name) => import(`./${name}`).then(() => $(name));\n";

/// Why the page's files are no page: for whoever has changed them, and found by the tests.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BundleError {
    /// A module that is not there, or is no text.
    #[error("{0} is not there")]
    Missing(String),
    /// An import or export in another form.
    #[error("{0}: this line cannot be read: {1}")]
    Line(String, String),
    /// Modules that import each other.
    #[error("{0} imports itself")]
    Circle(String),
}

/// Files by their names.
pub(super) type Sources<'a> = BTreeMap<String, Cow<'a, [u8]>>;

/// The bundles of these files, by their names, which are those of the modules that they begin with; and the style sheet.
///
/// # Errors
/// See [`BundleError`].
pub(super) fn bundle(sources: &Sources<'_>) -> Result<BTreeMap<String, Vec<u8>>, BundleError> {
    let mut graph = Graph { sources, modules: BTreeMap::new() };
    let main = graph.order(ENTRY)?;
    let mut bundles = BTreeMap::new();
    let mut script = HEAD.to_owned();
    graph.define(&main, &mut script);
    _ = writeln!(script, "$({});", quoted(ENTRY));
    bundles.insert(ENTRY.to_owned(), script.into_bytes());
    let known: BTreeSet<String> = main.into_iter().collect();
    let mut left: Vec<String> = graph.later(&known);
    while let Some(entry) = left.pop() {
        if bundles.contains_key(&entry) {
            continue;
        }
        let own: Vec<String> = graph.order(&entry)?.into_iter().filter(|name| !known.contains(name)).collect();
        let up = "../".repeat(entry.matches('/').count());
        let mut script = format!("import {{ $define }} from {};\n", quoted(&format!("./{up}{ENTRY}")));
        graph.define(&own, &mut script);
        bundles.insert(entry, script.into_bytes());
        left.extend(graph.later(&own.into_iter().collect()).into_iter().filter(|name| !known.contains(name)));
    }
    let styles = [STYLE].into_iter().chain(STYLES).filter_map(|name| sources.get(name));
    bundles.insert(STYLE.to_owned(), styles.map(AsRef::as_ref).collect::<Vec<&[u8]>>().join(&b'\n'));
    Ok(bundles)
}

/// The markup of the page, whose scripts and style sheets are below `folder`.
pub(super) fn index(markup: &str, folder: &str) -> String {
    let is_needed = |line: &&str| !STYLES.iter().any(|name| line.contains(&format!("./page/{name}")));
    let lines: Vec<&str> = markup.lines().filter(is_needed).collect();
    lines.join("\n").replace("\"./page/", &format!("\"./page/{folder}/"))
}

struct Module {
    /// What it imports at once, in order.
    imports: Vec<String>,
    /// What it imports when it is needed.
    later: Vec<String>,
    /// Its text, in which other modules are asked for by `$` and `$import`, and which ends by giving its exports.
    body: String,
}

struct Graph<'a> {
    sources: &'a Sources<'a>,
    modules: BTreeMap<String, Module>,
}

impl Graph<'_> {
    /// The modules that `entry` needs, and itself, each behind what it imports.
    fn order(&mut self, entry: &str) -> Result<Vec<String>, BundleError> {
        let mut order = Vec::new();
        self.visit(entry, &mut order, &mut Vec::new())?;
        Ok(order)
    }

    fn visit(&mut self, name: &str, order: &mut Vec<String>, above: &mut Vec<String>) -> Result<(), BundleError> {
        if above.iter().any(|known| known == name) {
            return Err(BundleError::Circle(name.to_owned()));
        }
        if order.iter().any(|known| known == name) {
            return Ok(());
        }
        if !self.modules.contains_key(name) {
            let text = self.sources.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok());
            let text = text.ok_or_else(|| BundleError::Missing(name.to_owned()))?;
            self.modules.insert(name.to_owned(), module(name, text)?);
        }
        let imports = self.modules.get(name).map(|module| module.imports.clone()).unwrap_or_default();
        above.push(name.to_owned());
        for import in imports {
            self.visit(&import, order, above)?;
        }
        above.pop();
        order.push(name.to_owned());
        Ok(())
    }

    /// What these modules import when it is needed.
    fn later(&self, names: &BTreeSet<String>) -> Vec<String> {
        names.iter().filter_map(|name| self.modules.get(name)).flat_map(|module| module.later.clone()).collect()
    }

    fn define(&self, names: &[String], script: &mut String) {
        for name in names {
            let Some(module) = self.modules.get(name) else { continue };
            _ = writeln!(script, "$define({}, ($, $import) => {{\n{}}});", quoted(name), module.body);
        }
    }
}

/// A module as a function's body.
fn module(name: &str, text: &str) -> Result<Module, BundleError> {
    let mut module = Module { imports: Vec::new(), later: Vec::new(), body: String::new() };
    let wrong = |line: &str| BundleError::Line(name.to_owned(), line.chars().take(100).collect());
    let mut exports: Vec<(String, String)> = Vec::new();
    let is_vendored = name.starts_with("vendor/");
    let mut is_comment = false;
    for mut line in text.lines() {
        // Comments are for whoever reads the files, which are served too.
        if !is_vendored {
            let start = line.trim_start();
            let begins = start.starts_with("/*");
            if is_comment || begins {
                is_comment = !start.contains("*/");
                continue;
            }
            if start.is_empty() || start.starts_with("//") {
                continue;
            }
            line = start;
        }
        if line.starts_with("//# sourceMappingURL") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("import ") {
            let (bindings, path) = import(rest).ok_or_else(|| wrong(line))?;
            let path = joined(name, path).ok_or_else(|| wrong(line))?;
            match bindings {
                Some(bindings) => {
                    _ = writeln!(module.body, "const {} = $({});", bindings.replace(" as ", ": "), quoted(&path));
                }
                None => _ = writeln!(module.body, "$({});", quoted(&path)),
            }
            module.imports.push(path);
        } else if let Some(declaration) = line.strip_prefix("export ") {
            let declared = declared(declaration).ok_or_else(|| wrong(line))?;
            exports.push((declared.to_owned(), declared.to_owned()));
            _ = writeln!(module.body, "{declaration}");
        } else if let Some((code, list)) = is_vendored.then(|| last_list(line)).flatten() {
            exports.extend(list);
            _ = writeln!(module.body, "{code}");
        } else {
            let line = imported_later(name, line, &mut module.later).ok_or_else(|| wrong(line))?;
            _ = writeln!(module.body, "{line}");
        }
    }
    let given: Vec<String> = exports.iter().map(|(local, name)| format!("{}: {local}", quoted(name))).collect();
    _ = writeln!(module.body, "return {{ {} }};", given.join(", "));
    Ok(module)
}

/// The bindings and the path of what stands behind `import`.
fn import(rest: &str) -> Option<(Option<&str>, &str)> {
    let rest = rest.trim_end().strip_suffix(';')?;
    let (bindings, path) = match rest.split_once(" from ") {
        Some((bindings, path)) => (Some(bindings.trim()), path),
        None => (None, rest),
    };
    let is_list = bindings.is_none_or(|bindings| bindings.starts_with('{') && bindings.ends_with('}'));
    Some((bindings, unquoted(path.trim())?)).filter(|_| is_list)
}

/// The name that stands behind `export`.
fn declared(declaration: &str) -> Option<&str> {
    let rest = declaration.strip_prefix("async ").unwrap_or(declaration);
    let rest = ["function* ", "function ", "class ", "const "].iter().find_map(|word| rest.strip_prefix(word))?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

/// The code before the list of exports with which a line ends, and the list: local names, and those that others use.
fn last_list(line: &str) -> Option<(&str, Vec<(String, String)>)> {
    let (code, list) = line.rsplit_once("export{")?;
    let (list, rest) = list.split_once('}')?;
    let pair = |item: &str| {
        let (local, name) = item.split_once(" as ").unwrap_or((item, item));
        (local.trim().to_owned(), name.trim().to_owned())
    };
    matches!(rest, "" | ";").then(|| (code, list.split(',').map(pair).collect()))
}

/// The line with its `import("…")` as a question for a bundle; what is imported goes to `later`.
fn imported_later(name: &str, line: &str, later: &mut Vec<String>) -> Option<String> {
    let mut parts = line.split("import(");
    let mut made = parts.next()?.to_owned();
    for part in parts {
        let (path, rest) = part.split_once(')')?;
        let path = joined(name, unquoted(path)?)?;
        _ = write!(made, "$import({}){rest}", quoted(&path));
        later.push(path);
    }
    Some(made)
}

fn unquoted(text: &str) -> Option<&str> {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\''))
}

/// A text as a JSON text, which is one of JavaScript too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A path relative to the folder of `of`; `None` where it leads out.
fn joined(of: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = of.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundled(files: &[(&str, &'static str)]) -> Result<BTreeMap<String, String>, BundleError> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), Cow::Borrowed(text.as_bytes())));
        let bundles = bundle(&files.collect())?;
        Ok(bundles.into_iter().map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect())
    }

    #[test]
    fn modules_become_functions_in_the_order_of_their_needs() {
        let bundles = bundled(&[
            ("app.js", "// Words.\nimport { a as b } from \"./a.js\";\nimport './vendor/v.js';\n\nb(import(\"./later.js\"));\n"),
            ("a.js", "/** Words. */\nexport async function a() {\n  return 1;\n}\nexport const c = 1;\n"),
            ("vendor/v.js", "// Kept.\nvar q=1;export{q as value,q as default};\n//# sourceMappingURL=v.js.map\n"),
            ("later.js", "import { a } from \"./a.js\";\nimport { deep } from './deep/one.js';\n"),
            ("deep/one.js", "import { c } from '../a.js';\nexport class deep {}\n"),
            ("style.css", "a {}"),
            ("changes.css", "b {}"),
        ])
        .unwrap();
        let main = [
            "$define(\"a.js\", ($, $import) => {\nasync function a() {\nreturn 1;\n}\nconst c = 1;\nreturn { \"a\": a, \"c\": c };\n});\n",
            "$define(\"vendor/v.js\", ($, $import) => {\n// Kept.\nvar q=1;\nreturn { \"value\": q, \"default\": q };\n});\n",
            "$define(\"app.js\", ($, $import) => {\nconst { a: b } = $(\"a.js\");\n$(\"vendor/v.js\");\nb($import(\"later.js\"));\nreturn {  };\n});\n",
            "$(\"app.js\");\n",
        ];
        assert_eq!(bundles["app.js"], format!("{HEAD}{}", main.concat()));
        let later = [
            "import { $define } from \"./app.js\";\n",
            "$define(\"deep/one.js\", ($, $import) => {\nconst { c } = $(\"a.js\");\nclass deep {}\nreturn { \"deep\": deep };\n});\n",
            "$define(\"later.js\", ($, $import) => {\nconst { a } = $(\"a.js\");\nconst { deep } = $(\"deep/one.js\");\nreturn {  };\n});\n",
        ];
        assert_eq!(bundles["later.js"], later.concat());
        assert_eq!(bundles["style.css"], "a {}\nb {}");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let line = |text: &str| BundleError::Line("app.js".to_owned(), text.to_owned());
        let rows: [(&[(&str, &str)], BundleError); 6] = [
            (&[], BundleError::Missing("app.js".to_owned())),
            (&[("app.js", "import './a.js';")], BundleError::Missing("a.js".to_owned())),
            (&[("app.js", "import './app.js';")], BundleError::Circle("app.js".to_owned())),
            (&[("app.js", "import a from './a.js';")], line("import a from './a.js';")),
            (&[("app.js", "export default a;")], line("export default a;")),
            (&[("app.js", "import '../out.js';")], line("import '../out.js';")),
        ];
        for (files, expected) in rows {
            assert_eq!(bundled(files), Err(expected));
        }
    }

    #[test]
    fn the_markup_leads_to_the_bundles() {
        let markup =
            "<link href=\"./page/style.css\">\n<link href=\"./page/drawings.css\">\n<script src=\"./page/app.js\">";
        assert_eq!(index(markup, "v-1"), "<link href=\"./page/v-1/style.css\">\n<script src=\"./page/v-1/app.js\">");
    }
}
