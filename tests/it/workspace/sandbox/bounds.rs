//! What commands may use up.

use std::time::{Duration, Instant};

use switchboard::workspace::command::CommandSettings;

use super::kit::{alive, each, mark, settings};

#[test]
fn processes_are_bounded() {
    let few = CommandSettings { processes: 40, ..settings() };
    each(&few, async |place| {
        let mark = mark(20);
        let begun = Instant::now();
        let found = place.run(&format!("i=0; while [ $i -lt 300 ]; do sleep {mark} & i=$((i+1)); done; sleep 5")).await;
        assert_ne!(found.exit_code, 0, "{found:?}");
        assert!(found.stderr.contains("processes") || found.stderr.contains("fork"), "{found:?}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        assert_eq!(alive(&mark), 0);
    });
}

#[test]
fn processes_that_double_are_bounded() {
    let few = CommandSettings { processes: 40, ..settings() };
    each(&few, async |place| {
        // Never more than 1,024 of them, even if nothing held them.
        let begun = Instant::now();
        let found = place.run("perl -e 'for (1..10) { fork } sleep 2'").await;
        let refused = !found.timed_out && begun.elapsed() < Duration::from_secs(60);
        assert!(refused, "{found:?}");
        if found.exit_code != 0 {
            assert_eq!(found.exit_code, 137, "{found:?}");
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
        }
    });
}

#[test]
fn memory_is_bounded() {
    let small = CommandSettings { memory: 150 << 20, ..settings() };
    each(&small, async |place| {
        let one = "perl -e '$x = \"x\" x (SIZE << 20); sleep 2; print \"held\"'";
        let fits = place.run(&one.replace("SIZE", "20").replace("sleep 2; ", "")).await;
        assert_eq!((fits.exit_code, &*fits.stdout), (0, "held"));
        let found = place.run(&one.replace("SIZE", "400")).await;
        assert_ne!(found.exit_code, 0, "one process: {found:?}");
        assert_eq!(found.stdout, "");
        let several = format!("{one} & {one} & {one} & wait", one = one.replace("SIZE", "35"));
        let found = place.run(&several).await;
        assert_eq!(found.exit_code, 137, "all together: {found:?}");
        assert!(found.stderr.contains("more than 150 MiB of memory"), "{found:?}");
    });
}

#[test]
fn files_are_bounded() {
    let small = CommandSettings { file_size: 1 << 20, temporary: 3 << 20, ..settings() };
    each(&small, async |place| {
        let found = place.run("head -c 5000000 /dev/zero > sub/big; ls -l sub/big | cut -d' ' -f5; head -c 9000000 /dev/zero > sub/big").await;
        assert_eq!((found.exit_code, &*found.stdout), (153, "1048576\n"), "{found:?}");
        if place.commands.kind().words().contains("without namespaces") {
            return;
        }
        for folder in ["$TMPDIR", "$HOME", "/dev/shm"] {
            let found = place
                .run(&format!("for i in 1 2 3 4 5; do head -c 1000000 /dev/zero > {folder}/$i || exit 9; done"))
                .await;
            assert_eq!(found.exit_code, 9, "{folder}: {found:?}");
        }
        for folder in ["/", "/dev", "/run", "/etc", "/usr", "/proc"] {
            let found = place.run(&format!("echo x > {folder}/new")).await;
            assert_ne!(found.exit_code, 0, "{folder}: {found:?}");
        }
    });
}

#[test]
fn no_core_is_left() {
    each(&settings(), async |place| {
        let found = place.run("cd sub; ulimit -c; sh -c 'kill -ABRT $$'; echo $?; ls").await;
        assert_eq!(found.stdout, "0\n134\ndeep\n", "{found:?}");
    });
}
