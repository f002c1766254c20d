//! Settings as an operator gives them: layers, variables, files, folders, and what is said about mistakes.

mod files;
mod layers;
mod mistakes;
mod models;
mod prices;
mod profiles;
mod providers;

use std::path::Path;

use switchboard::app::{self, StartError};
use switchboard::config::{Config, Problem, Sources};

/// The environment with these variables.
fn env(variables: &[(&str, &str)]) -> Sources {
    let env = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Sources { env, ..Sources::default() }
}

/// Problems as an operator reads them.
fn lines(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(Problem::to_string).collect()
}

/// The problems of settings that must have some.
fn problems(sources: &Sources) -> Vec<String> {
    lines(&Config::load(sources).err().unwrap_or_default())
}

/// The problems of a folder's files.
async fn file_problems(dir: &Path) -> Vec<String> {
    problems_of_files(&Sources { dir: Some(dir.to_owned()), ..Sources::default() }).await
}

/// The problems of the files, where the settings have none.
async fn problems_of_files(sources: &Sources) -> Vec<String> {
    let config = Config::load(sources).unwrap();
    match app::check(&config, &sources.assets()).await {
        Ok(_) => Vec::new(),
        Err(StartError::Config(problems)) => lines(&problems),
        Err(other) => panic!("{other}"),
    }
}

/// Writes `text` to `path` below `dir`.
fn write(dir: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
