//! The filter of system calls: what no build or test needs, and what has been a way out of sandboxes.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule as Rule, apply_filter,
};

use super::Step;
use crate::workspace::command::spec::{Ground, Spec};

/// System calls that are refused whatever their arguments are.
const REFUSED: [i64; 53] = [
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    // memory that nobody counts
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // mounts, roots and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // keys
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // programs for the kernel
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    // the machine
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// What only one kind of processor has.
#[cfg(target_arch = "x86_64")]
const ALSO_REFUSED: &[i64] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_lookup_dcookie,
];
#[cfg(not(target_arch = "x86_64"))]
const ALSO_REFUSED: &[i64] = &[libc::SYS_kexec_file_load];

/// Requests to a terminal by which a program types into it, or takes it over: `TIOCSTI`, `TIOCLINUX`, `TIOCSETD`. The
/// constants of `libc` differ in their type from library to library.
const TERMINAL: [u64; 3] = [0x5412, 0x541c, 0x5423];

/// Flags of a new process by which it gets namespaces of its own.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The bit of a system call's number by which 64-bit processors take calls with 32-bit pointers.
#[cfg(target_arch = "x86_64")]
const SHORT_POINTERS: Option<i64> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const SHORT_POINTERS: Option<i64> = None;

/// Calls that have another number there: `ioctl`, `ptrace`, `kexec_load`, `process_vm_readv`, `process_vm_writev`.
const SHORT: [i64; 5] = [514, 521, 528, 539, 540];

/// Ties this process and all it starts.
pub(super) fn apply(spec: &Spec) -> Result<(), String> {
    // `clone3` has its flags where no filter can read them. Who is told that there is none uses `clone`.
    let missing = program(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    let refused = program(rules(spec)?, libc::EPERM)?;
    apply_filter(&missing).step("filtering system calls")?;
    apply_filter(&refused).step("filtering system calls")
}

/// The program that answers the calls of `rules` with an error.
fn program(mut rules: BTreeMap<i64, Vec<Rule>>, error: i32) -> Result<BpfProgram, String> {
    if let Some(bit) = SHORT_POINTERS {
        let twins: Vec<_> = rules.iter().map(|(call, rules)| (call | bit, rules.clone())).collect();
        rules.extend(twins);
        rules.extend(SHORT.map(|call| (call | bit, Vec::new())));
    }
    let arch = std::env::consts::ARCH.try_into().step("filtering system calls")?;
    let error = SeccompAction::Errno(error.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, error, arch).step("filtering system calls")?;
    filter.try_into().step("filtering system calls")
}

/// What changes a file's mode, owner, times or attributes by its name.
#[cfg(target_arch = "x86_64")]
const MARKS_BY_NAME: &[i64] =
    &[libc::SYS_chmod, libc::SYS_chown, libc::SYS_lchown, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
#[cfg(not(target_arch = "x86_64"))]
const MARKS_BY_NAME: &[i64] = &[];

/// Likewise, on every processor; the last four came with newer kernels.
const ALSO_BY_NAME: [i64; 10] = [
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fchmodat2,
    463,
    466,
    469,
];

/// What does so by an open file.
const MARKS_BY_FILE: [i64; 4] = [libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_fsetxattr, libc::SYS_fremovexattr];

/// What processes of one machine share without a file: it would outlive the command.
const SHARED: [i64; 5] = [libc::SYS_shmget, libc::SYS_shmat, libc::SYS_msgget, libc::SYS_semget, libc::SYS_mq_open];

/// What Landlock leaves open, for where nothing else holds: marks of files that cannot be written, and sockets of
/// services, which a pair's end can be turned to.
fn gaps(rules: &mut BTreeMap<i64, Vec<Rule>>) -> Result<(), String> {
    rules.extend(MARKS_BY_NAME.iter().chain(&ALSO_BY_NAME).map(|call| (*call, Vec::new())));
    let mut by_file = Vec::new();
    if rustix::process::geteuid().is_root() {
        // Who owns the system's files can open them for reading, and mark them.
        rules.extend(MARKS_BY_FILE.map(|call| (call, Vec::new())));
    } else {
        // Without a name the times are an open file's.
        by_file.push(rule(vec![Condition::new(1, Len::Qword, Op::Ne, 0).step("filtering system calls")?])?);
    }
    rules.insert(libc::SYS_utimensat, by_file);
    rules.extend(SHARED.map(|call| (call, Vec::new())));
    let datagrams = condition(1, Op::MaskedEq(0xf), libc::SOCK_DGRAM.unsigned_abs().into())?;
    rules.insert(libc::SYS_socketpair, vec![rule(vec![datagrams])?]);
    Ok(())
}

/// What is refused, by call; no rules mean always.
fn rules(spec: &Spec) -> Result<BTreeMap<i64, Vec<Rule>>, String> {
    let mut rules: BTreeMap<_, _> = REFUSED.iter().chain(ALSO_REFUSED).map(|call| (*call, Vec::new())).collect();
    let mut clone = Vec::new();
    for flag in NAMESPACES {
        let flag = u64::from(flag.unsigned_abs());
        clone.push(rule(vec![condition(0, Op::MaskedEq(flag), flag)?])?);
    }
    rules.insert(libc::SYS_clone, clone);
    // Its own bounds it may lower, and nobody else's: not those of the process that counts.
    rules.insert(libc::SYS_prlimit64, vec![rule(vec![condition(0, Op::Ne, 0)?])?]);
    let mut ioctl = Vec::new();
    for request in TERMINAL {
        ioctl.push(rule(vec![condition(1, Op::Eq, request)?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctl);
    let mut others = Vec::new();
    for family in families(spec) {
        others.push(condition(0, Op::Ne, u64::from(family.unsigned_abs()))?);
    }
    // Without conditions a rule would not be one: then no socket at all.
    let socket = if others.is_empty() { Vec::new() } else { vec![rule(others)?] };
    rules.insert(libc::SYS_socket, socket);
    if !spec.network {
        // A pair's end of this kind can be turned to a service.
        let datagrams = condition(1, Op::MaskedEq(0xf), libc::SOCK_DGRAM.unsigned_abs().into())?;
        rules.insert(libc::SYS_socketpair, vec![rule(vec![datagrams])?]);
    }
    if spec.ground == Ground::Landlock {
        gaps(&mut rules)?;
    }
    Ok(rules)
}

/// Which kinds of sockets can be made. A service's socket may lie in the root, and where the machine's own files are in sight,
/// so are those of its services.
fn families(spec: &Spec) -> Vec<i32> {
    let mut families = Vec::new();
    if spec.network {
        families.extend([libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK]);
        families.extend((spec.ground != Ground::Landlock).then_some(libc::AF_UNIX));
    }
    families
}

/// A rule of conditions that all have to hold.
fn rule(conditions: Vec<Condition>) -> Result<Rule, String> {
    Rule::new(conditions).step("filtering system calls")
}

/// A condition on the lower half of an argument, which is all that the kernel reads of these.
fn condition(index: u8, op: Op, value: u64) -> Result<Condition, String> {
    Condition::new(index, Len::Dword, op, value).step("filtering system calls")
}
