//! What a process may use up, and what it may do by rank.

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities};

use super::Step;
use crate::workspace::command::spec::Spec;

/// How much commands stand back for the server and for the first process, which has to be quicker than they are.
const BACK: i32 = 5;

/// Sets the bounds of this process and all it starts.
pub(super) fn set(spec: &Spec) -> Result<(), String> {
    let limits = spec.limits;
    // A program that runs a little too fast does no harm.
    let _ = nice(BACK);
    bound(Resource::Core, 0)?;
    bound(Resource::Fsize, limits.file_size)?;
    bound(Resource::Nofile, limits.open_files)?;
    // Memory that is really written: programs reserve far more address space than they use.
    bound(Resource::Data, limits.memory)?;
    if spec.ground.own_processes() {
        // Elsewhere the user's other processes would count. The kernel exempts root; the first process counts too.
        bound(Resource::Nproc, limits.processes)?;
    }
    Ok(())
}

/// One bound, not above the one that there is.
fn bound(resource: Resource, most: u64) -> Result<(), String> {
    let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
    setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) }).step("setting a limit")
}

/// Gives up every capability, for this process and all it starts.
pub(super) fn drop_capabilities() -> Result<(), String> {
    for number in 0..64 {
        let Some(capability) = CapabilitySet::from_bits(1 << number) else { continue };
        // Only who may can; without new privileges nothing comes back through the others.
        let _ = remove_capability_from_bounding_set(capability);
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).step("giving up capabilities")
}
