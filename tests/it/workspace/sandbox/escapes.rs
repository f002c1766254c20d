//! Ways out. Each row is a command that says `ESCAPED` where it gets through; none may. The same rows without a sandbox
//! show that the rows would notice.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command};
use std::time::Duration;

use switchboard::workspace::command::Kind;
use switchboard::workspace::command::request::CommandRequest;

use super::kit::{Place, each, one, settings};

/// What the rows find on this machine, by the names that they use.
struct Bait {
    env: BTreeMap<String, String>,
    victim: Child,
    tcp: TcpListener,
    udp: UdpSocket,
    paths: Vec<UnixListener>,
    open: OwnedFd,
}

impl Bait {
    fn lay(place: &Place) -> Self {
        let base = place.base.path().canonicalize().unwrap();
        let victim = Command::new("sleep").arg("100").spawn().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let name = format!("command-test-{}", base.display());
        let paths = vec![
            UnixListener::bind(base.join("outside/socket")).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
        ];
        // Without the mark that closes it in other programs.
        let open = rustix::io::dup(fs::File::open(base.join("outside/secret")).unwrap()).unwrap();
        let env = [
            ("BASE", base.to_str().unwrap().to_owned()),
            ("ROOT", place.root.to_str().unwrap().to_owned()),
            ("SERVER", std::process::id().to_string()),
            ("VICTIM", victim.id().to_string()),
            ("TCP", tcp.local_addr().unwrap().port().to_string()),
            ("UDP", udp.local_addr().unwrap().port().to_string()),
            ("ABSTRACT", name),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).into();
        Self { env, victim, tcp, udp, paths, open }
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

/// Whether a row gets through without a sandbox: always, only as root or on some machines.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Yes,
    Perhaps,
}
use Open::{Perhaps, Yes};

const FILES: &[(&str, Open, &str)] = &[
    ("passwords", Perhaps, "cat /etc/shadow"),
    ("keys of the machine", Perhaps, "ls /etc/ssl/private"),
    ("root's home", Perhaps, "cat /root/.profile || ls /root/."),
    ("homes", Perhaps, "ls /home/*"),
    ("a file outside", Yes, "cat $BASE/outside/secret"),
    ("a sibling with the same beginning", Yes, "cat $BASE/ws-sibling/secret"),
    ("by the folder above", Yes, "cat ../outside/secret"),
    ("by a link", Yes, "ln -s $BASE/outside/secret link; cat link"),
    ("by a link to a folder", Yes, "ln -s $BASE/outside linked; cat linked/secret"),
    ("by a hard link", Yes, "ln $BASE/outside/secret hard && cat hard"),
    ("by the root of a process", Yes, "cat /proc/self/root$BASE/outside/secret"),
    ("by the root of the first process", Perhaps, "cat /proc/1/root$BASE/outside/secret"),
    ("by the root of the server", Yes, "cat /proc/$SERVER/root$BASE/outside/secret"),
    ("by the server's folder", Yes, "ls /proc/$SERVER/cwd/"),
    ("by an open file of the server", Yes, "ls /proc/$SERVER/fd/"),
    ("writing outside", Yes, "echo x > $BASE/outside/new"),
    ("writing beside", Yes, "test -e $BASE/outside && echo x > $BASE/new && rm $BASE/new"),
    ("changing outside", Yes, "echo x >> $BASE/outside/secret"),
    ("shortening outside", Yes, ": > $BASE/outside/secret"),
    ("removing outside", Yes, "rm $BASE/outside/secret"),
    ("moving out", Yes, "cp file f2; mv f2 $BASE/outside/ && cat $BASE/outside/f2 && test ! -d /proc/sys/nowhere"),
    ("modes outside", Yes, "chmod 777 $BASE/outside/secret"),
    ("system folders", Perhaps, "echo x > /usr/command-test && rm /usr/command-test"),
    ("settings of the system", Perhaps, "echo x > /etc/command-test && rm /etc/command-test"),
    ("the root of all", Perhaps, "echo x > /command-test && rm /command-test"),
    ("the run folder", Perhaps, "echo x > /run/command-test && rm /run/command-test"),
    ("the machine's temporary folder", Yes, "test -n \"$(ls -d /tmp/.*/ws-sibling/secret)\""),
    ("programs in use", Perhaps, "cp file /bin/true-test && rm /bin/true-test"),
];

const PROTECTED: &[(&str, Open, &str)] = &[
    ("the state folder's content", Yes, "cat .state/secret"),
    ("by a way around", Yes, "cat sub/../.state/secret"),
    ("by a link", Yes, "ln -s .state peek; cat peek/secret"),
    ("by a hard link", Yes, "ln .state/secret hard2 && cat hard2"),
    ("by the root of a process", Yes, "cat /proc/self/root$ROOT/.state/secret"),
    ("writing in it", Yes, "echo x > .state/new"),
    ("removing in it", Yes, "rm .state/secret"),
    ("moving it away", Yes, "mv .state moved && mkdir .state"),
    ("removing it", Yes, "rm -r .state"),
    ("changing a hook", Yes, "echo x > .git/hooks/pre-commit"),
    ("a new hook", Yes, "echo x > .git/hooks/post-checkout"),
    ("removing a hook", Yes, "rm -f .git/hooks/pre-commit"),
    ("a hook's mode", Yes, "chmod +x .git/hooks/pre-commit"),
    ("hooks by rename", Yes, "mkdir h && mv .git/hooks .git/old && mv h .git/hooks"),
    ("hooks by a link", Yes, "rm -r .git/hooks && ln -s ../sub .git/hooks"),
    ("adding to the configuration", Yes, "echo x >> .git/config"),
    ("git's own way", Yes, "git config core.fsmonitor evil"),
    ("replacing the configuration", Yes, "echo x > c && mv -f c .git/config && grep x .git/config"),
    ("a link in its place", Yes, "ln -sf ../file .git/config"),
    ("moving the repository away", Yes, "mv .git gone && mkdir .git"),
    ("moving it and back", Yes, "mv .git gone && echo x > gone/config && mv gone .git"),
    ("removing the repository", Yes, "rm -rf .git; test ! -e .git/hooks"),
    (
        "exchanging folders",
        Yes,
        "mkdir -p e/hooks; perl -e '($a, $b) = (\"e\", \".git\"); exit(syscall(316, -100, $a, -100, $b, 2) != 0)'",
    ),
    ("moving the whole root", Yes, "cd / && mv $ROOT $BASE/away && mv $BASE/away $ROOT"),
];

const MACHINE: &[(&str, Open, &str)] = &[
    ("the server's environment", Yes, "cat /proc/$SERVER/environ"),
    ("anybody's environment", Perhaps, "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep ^CARGO_MANIFEST_DIR="),
    ("the server's memory", Yes, "head -c 0 /proc/$SERVER/mem && cat /proc/$SERVER/maps"),
    ("the server's arguments", Yes, "cat /proc/$SERVER/cmdline"),
    ("the first process's memory", Perhaps, "cat /proc/1/maps && head -c 1 /proc/1/maps | grep ."),
    ("the first process's files", Perhaps, "ls /proc/1/fd/ && cat /proc/1/environ"),
    ("a signal to the server", Yes, "kill -0 $SERVER"),
    ("a signal to anybody", Yes, "kill -CONT $VICTIM"),
    ("killing everybody else", Perhaps, "kill -9 $VICTIM"),
    ("mounting", Perhaps, "mount -t tmpfs none sub && umount sub"),
    (
        "mounting by the call",
        Perhaps,
        "perl -e '($a, $b) = (\"tmpfs\", \"sub\"); exit(syscall(165, $a, $b, $a, 0, 0) != 0)' && umount sub",
    ),
    ("unmounting", Perhaps, "umount -l .state"),
    ("mounting writable", Perhaps, "mount -o remount,rw,bind .git/hooks"),
    ("another root", Perhaps, "chroot / true"),
    ("a namespace of users", Perhaps, "unshare -r true"),
    ("a namespace by clone", Perhaps, "perl -e '$p = syscall(56, 0x10000011, 0, 0, 0, 0); exit($p < 0)'"),
    ("a namespace of another", Perhaps, "nsenter -t $SERVER -m true"),
    ("tcp", Yes, "bash -c 'echo x > /dev/tcp/127.0.0.1/'$TCP"),
    ("tcp to all", Yes, "bash -c 'echo x > /dev/tcp/0.0.0.0/'$TCP"),
    ("udp", Yes, "bash -c 'echo x > /dev/udp/127.0.0.1/'$UDP"),
    ("udp to elsewhere", Perhaps, "bash -c 'echo x > /dev/udp/192.0.2.1/9'"),
    (
        "listening",
        Yes,
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) && bind(S, sockaddr_in(0, INADDR_ANY)) && listen(S, 1) || exit 1'",
    ),
    (
        "a socket of the machine",
        Yes,
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(\"$ENV{BASE}/outside/socket\")) || exit 1'",
    ),
    (
        "an abstract socket",
        Yes,
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack(\"Sxa*\", 1, $ENV{ABSTRACT})) || exit 1'",
    ),
    ("netlink", Yes, "perl -e 'socket(S, 16, 3, 0) || exit 1'"),
    ("packets", Perhaps, "perl -e 'socket(S, 17, 3, 0) || exit 1'"),
    ("the host of this machine", Perhaps, "perl -e 'socket(S, 40, 1, 0) || exit 1'"),
    ("the kernel's ciphers", Perhaps, "perl -e 'socket(S, 38, 5, 0) || exit 1'"),
    ("a device", Perhaps, "mknod device b 254 0"),
    ("a device of characters", Perhaps, "mknod device c 1 3"),
    ("disks", Perhaps, "head -c 1 /dev/vda || head -c 1 /dev/sda"),
    ("the kernel's log", Perhaps, "head -c 0 /dev/kmsg && dmesg"),
    ("kernel settings", Perhaps, "v=$(cat /proc/sys/kernel/core_pattern); echo \"$v\" > /proc/sys/kernel/core_pattern"),
    ("the machine's keys", Perhaps, "echo h > /proc/sysrq-trigger"),
    ("hardware", Perhaps, "ls /sys/class"),
    ("control groups", Perhaps, "ls /sys/fs/cgroup/*"),
    ("the machine's name", Perhaps, "hostname $(hostname)"),
    ("open files of the server", Perhaps, "perl -e 'for (3..200) { open(F, \"<&=$_\") && exit 0 } exit 1'"),
    ("another user", Perhaps, "setpriv --reuid 12345 --clear-groups true"),
    ("a user's rights by a program", Yes, "perl -e 'exit(syscall(157, 39, 0, 0, 0, 0) != 0)'"),
    ("higher bounds", Perhaps, "ulimit -H -n 1000000"),
    ("other owners", Perhaps, "chown 12345 file"),
    ("higher rank", Perhaps, "nice -n -10 true 2>&1 | grep -q . && exit 1; test $(nice -n -10 nice) -lt 0"),
];

/// System calls by their numbers on x86_64: each has to be answered with `EPERM`, whatever its arguments.
#[cfg(target_arch = "x86_64")]
const CALLS: &[(&str, u32)] = &[
    ("ptrace", 101),
    ("process_vm_readv", 310),
    ("process_vm_writev", 311),
    ("pidfd_getfd", 438),
    ("unshare", 272),
    ("setns", 308),
    ("mount", 165),
    ("umount2", 166),
    ("pivot_root", 155),
    ("chroot", 161),
    ("open_tree", 428),
    ("move_mount", 429),
    ("fsopen", 430),
    ("mount_setattr", 442),
    ("open_by_handle_at", 304),
    ("keyctl", 250),
    ("add_key", 248),
    ("bpf", 321),
    ("userfaultfd", 323),
    ("io_uring_setup", 425),
    ("perf_event_open", 298),
    ("kexec_load", 246),
    ("init_module", 175),
    ("reboot", 169),
    ("clock_settime", 227),
    ("iopl", 172),
    ("ptrace with short pointers", 0x4000_0000 | 521),
    ("unshare with short pointers", 0x4000_0000 | 272),
];

async fn escapes(place: &Place, bait: &Bait, row: &str) -> Option<String> {
    let command = format!("( {row}\n) && echo ESCAPED");
    let env = bait.env.clone();
    let request = CommandRequest { env, timeout: Duration::from_secs(20), ..CommandRequest::new(command) };
    let found = place.ask(request).await;
    found.stdout.contains("ESCAPED").then_some(format!("{found:?}"))
}

async fn none_escapes(place: &Place, rows: &[(&str, Open, &str)]) {
    let mut bait = Bait::lay(place);
    let mut out = Vec::new();
    for (reason, _, row) in rows {
        if let Some(found) = escapes(place, &bait, row).await {
            out.push(format!("{reason}: {found}"));
        }
    }
    assert!(out.is_empty(), "{}\n{}", place.commands.kind().words(), out.join("\n"));
    assert!(bait.victim.try_wait().unwrap().is_none(), "the victim lives");
    assert!(rustix::fs::fstat(&bait.open).is_ok() && bait.paths.len() == 2);
    bait.tcp.set_nonblocking(true).unwrap();
    assert!(bait.tcp.accept().is_err(), "nobody came");
    bait.udp.set_nonblocking(true).unwrap();
    assert!(bait.udp.recv(&mut [0; 9]).is_err(), "nothing came");
    intact(place);
}

/// Everything is as it was laid out.
fn intact(place: &Place) {
    let base = place.base.path();
    let text = |path: &str| fs::read_to_string(base.join(path)).unwrap();
    assert_eq!(text("outside/secret"), "sesame");
    assert_eq!(text("ws-sibling/secret"), "sesame");
    assert_eq!(text("ws/.state/secret"), "sesame");
    assert_eq!(text("ws/.git/config"), "[core]\n");
    assert_eq!(text("ws/.git/hooks/pre-commit"), "old");
    let names = |path: &str| {
        let mut names: Vec<_> = fs::read_dir(base.join(path))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names("."), ["outside", "ws", "ws-sibling"]);
    assert_eq!(names("ws/.state"), ["secret"]);
    assert_eq!(names("ws/.git/hooks"), ["pre-commit"]);
    assert!(names("outside").iter().all(|name| name == "secret" || name == "socket"));
    assert_eq!(fs::metadata(base.join("outside/secret")).unwrap().mode() & 0o777, 0o644);
    assert_eq!(fs::metadata(base.join("ws/.git/hooks/pre-commit")).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn files_outside_are_out_of_reach() {
    each(&settings(), async |place| none_escapes(&place, FILES).await);
}

#[test]
fn what_is_protected_stays_as_it_is() {
    each(&settings(), async |place| none_escapes(&place, PROTECTED).await);
}

#[test]
fn the_machine_is_out_of_reach() {
    each(&settings(), async |place| none_escapes(&place, MACHINE).await);
}

#[test]
fn without_a_sandbox_the_same_rows_get_through() {
    let rows = FILES.iter().chain(PROTECTED).chain(MACHINE).filter(|(_, open, _)| *open == Yes);
    for (reason, _, row) in rows {
        one(Kind::None, &settings(), async |place| {
            let bait = Bait::lay(&place);
            assert!(escapes(&place, &bait, row).await.is_some(), "{reason}");
        });
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_filter_answers_for_the_kernel() {
    each(&settings(), async |place| {
        for (name, number) in CALLS {
            let found = place.run(&format!("perl -e 'print syscall({number}, 0, 0, 0, 0, 0), \" \", $!+0'")).await;
            assert_eq!(found.stdout, "-1 1", "{name} in {}", place.commands.kind().words());
        }
        // Typing into a terminal: TIOCSTI, and with the upper half of the argument in use.
        for request in ["0x5412", "0x100005412", "0x541c"] {
            let row = format!("perl -e 'print syscall(16, 0, {request}, 0), \" \", $!+0'");
            assert_eq!(place.run(&row).await.stdout, "-1 1", "{request}");
        }
        assert_eq!(place.run("perl -e 'print syscall(435, 0, 0), \" \", $!+0'").await.stdout, "-1 38", "clone3");
    });
}

#[test]
fn nothing_of_the_repository_can_be_written() {
    each(&settings(), async |place| {
        for row in ["echo ../evil > .git/commondir", "echo x > .git/index", "echo x > .git/HEAD", "mkdir .git/modules"]
        {
            let found = place.run(row).await;
            assert_ne!(found.exit_code, 0, "{row}: {found:?}");
        }
        assert!(!place.root.join(".git/commondir").exists() && !place.root.join(".git/index").exists());
        // Whoever could change the bounds of the process that counts would have none.
        let found = place.run("perl -e 'exit(syscall(302, 1, 7, 0, 0) == 0 ? 0 : $!+0)'").await;
        assert_eq!(found.exit_code, 1, "prlimit of another process is refused: {found:?}");
        let found = place.run("perl -e '$x = \"x\"; exit(syscall(319, $x, 0) >= 0 ? 0 : $!+0)'").await;
        assert_eq!(found.exit_code, 1, "memory that nobody counts is refused: {found:?}");
    });
}

#[test]
fn a_socket_in_the_root_is_out_of_reach() {
    each(&settings(), async |place| {
        let _listener = std::os::unix::net::UnixListener::bind(place.root.join("service.sock")).unwrap();
        let connect = "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, sockaddr_un(\"service.sock\")) && print 1'";
        assert_eq!(place.run(connect).await.stdout, "");
    });
}

#[test]
fn a_repository_that_is_a_link_refuses_commands() {
    each(&settings(), async |place| {
        fs::rename(place.root.join(".git"), place.root.join("meta")).unwrap();
        std::os::unix::fs::symlink("meta", place.root.join(".git")).unwrap();
        let request = CommandRequest::new("true");
        let refused = place.commands.run(request, None).await.unwrap_err();
        assert_eq!(refused.code(), "sandbox_unavailable");
    });
}

#[test]
fn a_repository_without_hooks_is_read_only() {
    each(&settings(), async |place| {
        fs::remove_dir_all(place.root.join(".git/hooks")).unwrap();
        for row in ["mkdir .git/hooks", "echo x > .git/new", "mv .git gone", "mkdir h; mv h .git/hooks"] {
            let found = place.run(row).await;
            assert_ne!(found.exit_code, 0, "{row}");
        }
        assert!(!place.root.join(".git/hooks").exists());
    });
}

#[test]
fn a_worktrees_pointer_is_read_only() {
    each(&settings(), async |place| {
        fs::remove_dir_all(place.root.join(".git")).unwrap();
        fs::write(place.root.join(".git"), "gitdir: /elsewhere\n").unwrap();
        for row in ["echo x > .git", "rm -f .git", "echo x > f; mv -f f .git", "ln -sf file .git"] {
            place.run(row).await;
        }
        let mut text = String::new();
        fs::File::open(place.root.join(".git")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "gitdir: /elsewhere\n");
    });
}
