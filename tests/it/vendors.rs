//! The walk to another vendor, as `docs/EXTENDING.md` tells it: one folder in `src/llm/` and its line in the table of
//! `src/llm/mod.rs`, and then what is said of it and what shows that it works. Each test says what is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use switchboard::llm::Vendor;

use crate::tidy::{Source, none, sources};

/// The file with the table.
const TABLE: &str = "src/llm/mod.rs";

/// What models can do by their names, whoever serves them: such a name may have that of a vendor in it.
const MODELS: &str = "src/llm/anthropic.rs";

/// The files that speak of each vendor, and their words.
const SAID: [(&str, &str); 7] = [
    ("config/default.toml", "\n[llm.NAME]\n"),
    ("docs/CONFIG.md", "| `llm.NAME.base_url` | `BASE_URL` |"),
    ("docs/CONFIG.md", "| `llm.NAME.model` | `MODEL` |"),
    ("docs/CONFIG.md", "| `llm.NAME.api_key` |"),
    ("docs/PROVIDERS.md", "| `NAME` |"),
    ("docs/ARCHITECTURE.md", " NAME/"),
    ("src/demo/model/answer.rs", "`NAME`"),
];

/// The files that name the usual variable of each vendor's key.
const SAID_OF_KEYS: [&str; 2] = ["docs/CONFIG.md", "src/demo/model/answer.rs"];

/// What shows that a wire of a vendor works.
const SHOWN: [&str; 3] =
    ["tests/fixtures/transcripts/NAME", "tests/fixtures/requests/NAME", "tests/fuzz/fuzz_targets/fold_NAME.rs"];

/// Clouds that serve models of other vendors: they have addresses and credentials of their own, and speak those vendors' words,
/// so that they name them and fold nothing themselves.
const CLOUDS: [(Vendor, &[Vendor]); 1] = [(Vendor::Vertex, &[Vendor::Gemini, Vendor::Claude])];

/// The vendors whose models `vendor` serves.
fn served_by(vendor: Vendor) -> &'static [Vendor] {
    CLOUDS.into_iter().find(|(cloud, _)| *cloud == vendor).map_or(&[], |(_, served)| served)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The code that is no test.
fn product(source: &Source) -> impl Iterator<Item = &str> {
    let is_test = source.path.contains("/tests");
    source.code().take_while(move |line| !is_test && !line.contains("#[cfg(test)]"))
}

/// How code names a vendor: by the variant, the folder, the name.
fn names(vendor: Vendor) -> [String; 5] {
    let name = vendor.name();
    let [of_all, of_us] = ["Vendor", "Self"].map(|path| format!("{path}::{vendor:?}"));
    [of_all, of_us, format!("{name}::"), format!("mod {name};"), format!("\"{name}\"")]
}

#[test]
fn each_folder_of_a_vendor_is_in_the_table() {
    let folders = fs::read_dir(root().join("src/llm")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.join("wire.rs").is_file());
    let mut folders: Vec<String> = folders.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    folders.sort();
    let mut names = Vendor::ALL.map(Vendor::name);
    names.sort_unstable();
    assert_eq!(folders, names);
    assert!(Vendor::ALL.is_sorted(), "the order of `ALL` is that of the variants, in which `auto` tries them");
}

#[test]
fn nothing_but_its_folder_and_its_line_names_a_vendor() {
    let mut violations = Vec::new();
    for source in sources("src") {
        for vendor in Vendor::ALL {
            let may_name = |of: &Vendor| *of == vendor || served_by(*of).contains(&vendor);
            let folders = Vendor::ALL.into_iter().filter(may_name).map(|of| format!("src/llm/{}/", of.name()));
            if source.path == TABLE
                || source.path == MODELS
                || folders.into_iter().any(|folder| source.path.starts_with(&folder))
            {
                continue;
            }
            let mut names = names(vendor).to_vec();
            // Elsewhere it is a variant of some other enum.
            if !source.path.starts_with("src/llm/") {
                names.retain(|name| !name.starts_with("Self::"));
            }
            if !SAID_OF_KEYS.contains(&source.path.as_str()) {
                names.extend(vendor.usual_key().map(str::to_owned));
            }
            for line in product(&source).filter(|line| names.iter().any(|name| line.contains(name))) {
                violations.push(format!("{}: {}", source.path, line.trim()));
            }
        }
    }
    none(violations);
}

#[test]
fn the_table_names_a_vendor_four_times() {
    let table = sources("src/llm").into_iter().find(|source| source.path == TABLE).unwrap();
    for vendor in Vendor::ALL {
        let (names, variant) = (names(vendor), format!("{vendor:?},"));
        let is_named = |line: &&str| line.trim() == variant || names.iter().any(|name| line.contains(name));
        let lines: Vec<&str> = table.code().filter(is_named).collect();
        assert_eq!(lines.len(), 4, "its folder, its variant, its place in `ALL`, its facts: {lines:#?}");
    }
}

/// The table of `docs/PROVIDERS.md`, against what models are really sent.
#[test]
fn the_sizes_and_numbers_of_files_are_documented() {
    let text = read("docs/PROVIDERS.md");
    for vendor in Vendor::ALL.into_iter().filter(|vendor| served_by(*vendor).is_empty()) {
        let takes = vendor.defaults().takes("claude nova", None);
        let number = |number: usize| if number == usize::MAX { "any".to_owned() } else { number.to_string() };
        let side = if takes.image_side == u32::MAX { "any".to_owned() } else { format!("{} px", takes.image_side) };
        let row = format!(
            "| `{}` | {} bytes | {side} | {} | {} bytes | {} |",
            vendor.name(),
            takes.image_bytes,
            number(takes.images_max),
            takes.pdf_bytes,
            number(takes.pdfs_max)
        );
        assert!(text.contains(&row), "{row}");
    }
}

#[test]
fn what_is_said_of_vendors_is_said_of_each() {
    let mut missing = Vec::new();
    for vendor in Vendor::ALL {
        let common = vendor.defaults().common;
        for (path, words) in SAID {
            let words = words.replace("BASE_URL", &common.base_url).replace("MODEL", &common.model);
            let words = words.replace("NAME", vendor.name());
            if !read(path).contains(&words) {
                missing.push(format!("{path}: {}", words.trim()));
            }
        }
        for (path, key) in SAID_OF_KEYS.into_iter().filter_map(|path| Some((path, vendor.usual_key()?))) {
            if !read(path).contains(&format!("`{key}`")) {
                missing.push(format!("{path}: {key}"));
            }
        }
        for wire in vendor.wires() {
            let shown = SHOWN.map(|path| path.replace("NAME", wire.name));
            missing.extend(shown.into_iter().filter(|path| !root().join(path).exists()));
        }
    }
    none(missing);
}

#[test]
fn each_wire_has_a_name_and_a_folder_of_its_own() {
    let mut names = BTreeSet::new();
    for vendor in Vendor::ALL {
        let folder = format!("src/llm/{}", vendor.name());
        assert_eq!(vendor.wire().name, vendor.name(), "the first wire has the name of its vendor");
        for wire in vendor.wires() {
            let own = if wire.name == vendor.name() { folder.clone() } else { format!("{folder}/{}", wire.name) };
            assert!(names.insert(wire.name), "{} is the name of two wires", wire.name);
            let folds_itself = served_by(vendor).is_empty();
            for file in ["wire.rs", "fold.rs"].into_iter().filter(|file| folds_itself || *file != "fold.rs") {
                assert!(root().join(&own).join(file).is_file(), "{own}/{file}");
            }
        }
    }
}

#[test]
fn the_walk_in_the_documents_is_this_one() {
    let text = read("docs/EXTENDING.md");
    let walk = text.split("\n## ").find(|section| section.starts_with("A model vendor\n")).unwrap();
    let places = SAID.map(|(path, _)| path).into_iter().chain(SHOWN).chain(SAID_OF_KEYS).chain([TABLE]);
    let missing = places.map(|path| path.replace("NAME", "VENDOR")).filter(|path| !walk.contains(path.as_str()));
    none(missing.map(|path| format!("docs/EXTENDING.md: {path}")).collect());
}
