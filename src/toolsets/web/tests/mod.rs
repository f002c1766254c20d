//! Pages and searches against servers of this machine.

mod fixture;
mod pages;
mod searches;
mod walls;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;

use self::fixture::Server;
use super::fetch::{FetchError, Fetcher, WebPage};
use crate::bounded::address::Exceptions;
use crate::bounded::client::{Lookup, system_lookup};
use crate::bounded::intake::Intake;
use crate::bounded::memory::Memory;

/// Far more than any of these pages needs.
const LONG: Duration = Duration::from_secs(60);

const LOCAL: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];

fn intake() -> Intake {
    Intake::new(Memory::new(0))
}

fn fetcher(exceptions: &str, timeout: Duration, lookup: &Lookup) -> Fetcher {
    Fetcher::new(Exceptions::parse(exceptions).unwrap(), timeout, lookup, intake()).unwrap()
}

/// Reaches `servers`, and nothing else of this machine.
fn reaching(servers: &[&Server]) -> Fetcher {
    let exceptions: Vec<_> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    fetcher(&exceptions.join(","), LONG, &system_lookup())
}

/// A name server with these names, whose answers follow each other; the last one stays. It counts.
fn names(names: &[(&str, &[&[IpAddr]])]) -> (Lookup, Arc<AtomicUsize>) {
    let owned = |(name, answers): &(&str, &[&[IpAddr]])| {
        let answers: Vec<Vec<IpAddr>> = answers.iter().rev().map(|answer| answer.to_vec()).collect();
        ((*name).to_owned(), answers)
    };
    let names: Mutex<BTreeMap<_, _>> = Mutex::new(names.iter().map(owned).collect());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let lookup = move |name: String| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut names = names.lock().unwrap();
        let answers = names.get_mut(&name).unwrap_or_else(|| panic!("{name} was looked up"));
        let answer = if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() };
        let answer: BoxFuture<'static, _> = Box::pin(async move { Ok(answer) });
        answer
    };
    (Arc::new(lookup), asked)
}

fn code(fetched: Result<WebPage, FetchError>) -> &'static str {
    fetched.as_ref().err().map_or("none", FetchError::code)
}
