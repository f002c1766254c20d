//! Landlock: which files may be read and written, and in newer kernels which ports and processes may be reached.

use std::fs;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::Step;
use crate::workspace::command::layout;
use crate::workspace::command::spec::{Ground, Spec};

/// What a kernel must at least hold back where nothing but Landlock holds files: since version 3 shortening them, too.
const LEAST: ABI = ABI::V3;

/// The newest that is made use of.
const NEWEST: ABI = ABI::V6;

/// Devices that do nothing but what every program may do.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
];

/// What of `/proc` is about the machine as a whole, for where it also shows what is not the command's.
const MACHINE: [&str; 8] = [
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/uptime",
    "/proc/version",
    "/proc/sys/kernel",
];

/// Ties this process and all it starts.
pub(super) fn restrict(spec: &Spec) -> Result<(), String> {
    let enforced = rules(spec).step("Landlock")?;
    match spec.ground {
        // Its mounts hold already; this is a second wall where the kernel has it.
        Ground::Bubblewrap => Ok(()),
        Ground::Namespaces | Ground::Landlock | Ground::Open => {
            if enforced == RulesetStatus::NotEnforced {
                return Err("this kernel has no Landlock".to_owned());
            }
            Ok(())
        }
    }
}

/// Makes the rules and obeys them.
fn rules(spec: &Spec) -> Result<RulesetStatus, RulesetError> {
    let least = match spec.ground {
        Ground::Bubblewrap => CompatLevel::BestEffort,
        Ground::Namespaces | Ground::Landlock | Ground::Open => CompatLevel::HardRequirement,
    };
    // Where commands have no processes of their own, nothing else keeps their signals from the server's.
    let of_signals = match spec.ground {
        Ground::Landlock => CompatLevel::HardRequirement,
        Ground::Bubblewrap | Ground::Namespaces | Ground::Open => CompatLevel::BestEffort,
    };
    let mut ruleset = Ruleset::default()
        .set_compatibility(least)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(of_signals)
        .scope(Scope::Signal)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    if !spec.network {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST))?;
    }
    let (read, write) = if spec.ground == Ground::Landlock { alone(spec) } else { (vec!["/".into()], mounted(spec)) };
    // Names can be listed there, those in the state folder included; their content cannot be read.
    let list = (spec.ground == Ground::Landlock).then(|| spec.root.clone());
    let status = ruleset
        .create()?
        .add_rules(path_beneath_rules(list, AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(read, AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(write, AccessFs::from_all(NEWEST)))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// What may be written where mounts decide what is there at all.
fn mounted(spec: &Spec) -> Vec<PathBuf> {
    let own = [&spec.root, &spec.home, &spec.temp].into_iter().cloned();
    own.chain(DEVICES.iter().map(PathBuf::from)).collect()
}

/// What may be read and what may be written where nothing else holds. A right holds for all that is below, and cannot
/// be taken back there: so what is in the root is named one by one, and nothing new can be made beside it.
fn alone(spec: &Spec) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut read = layout::system(spec);
    read.extend(MACHINE.iter().map(PathBuf::from));
    let mut write: Vec<_> = DEVICES[..6].iter().map(PathBuf::from).collect();
    write.extend([spec.home.clone(), spec.temp.clone()]);
    for entry in fs::read_dir(&spec.root).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link's target is either in the root, and named itself, or not ours to give.
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) || !spec.in_root(&path) {
            continue;
        }
        if path.file_name().is_some_and(|name| name == ".git") {
            read.push(path);
        } else {
            write.push(path);
        }
    }
    (read, write)
}
