//! Which files a sandbox with mounts of its own consists of. One list, told twice: to `bwrap` as arguments, and by our
//! own namespaces as calls.

use std::fs;
use std::path::{Path, PathBuf};

use super::git;
use super::mount::Mount;
use super::spec::Spec;

/// The home folder inside: in memory, gone with the command.
pub(super) const HOME: &str = "/run/home";

/// The temporary folder inside, where the root does not contain it.
pub(super) const TEMP: &str = "/tmp";

/// Where this program is inside.
pub(super) const PROGRAM: &str = "/run/sandbox-exec";

/// Folders of programs and libraries.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs read below `/etc`; nothing here is secret on any usual system.
const ETC: [&str; 35] = [
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gitattributes",
    "group",
    "host.conf",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "lsb-release",
    "machine-id",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "python3",
    "redhat-release",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// What is needed below `/etc` with a network.
const ETC_NETWORK: [&str; 3] = ["gai.conf", "hosts", "resolv.conf"];

/// What commands may read of the system, as it is there now.
pub(super) fn system(spec: &Spec) -> Vec<PathBuf> {
    let network: &[&str] = if spec.network { &ETC_NETWORK } else { &[] };
    let etc = ETC.iter().chain(network).map(|name| Path::new("/etc").join(name));
    let java = fs::read_dir("/etc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("java-")));
    let extra = spec.readable.iter().filter(|path| path.is_absolute() && *path != Path::new("/")).cloned();
    SYSTEM.iter().map(PathBuf::from).chain(etc).chain(java).chain(extra).filter(|path| path.exists()).collect()
}

/// Where the temporary folder is: not where the root would be hidden by it.
pub(super) fn temp(root: &Path) -> PathBuf {
    if Path::new(TEMP).starts_with(root) { PathBuf::from("/run/tmp") } else { PathBuf::from(TEMP) }
}

/// The whole list.
pub(super) fn layout(spec: &Spec) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for path in system(spec) {
        mounts.push(match fs::read_link(&path) {
            // `/bin` is a link on most systems. A link of `/etc` may lead to what is not there inside: its target is.
            Ok(to) if path.parent() == Some(Path::new("/")) => Mount::Link { to, at: path },
            _ => Mount::Read(path),
        });
    }
    let bytes = spec.limits.temporary;
    mounts.push(Mount::Processes);
    mounts.push(Mount::Devices { bytes });
    mounts.push(Mount::Memory { at: spec.temp.clone(), bytes });
    mounts.push(Mount::Memory { at: spec.home.clone(), bytes });
    mounts.push(Mount::Write(spec.root.clone()));
    mounts.extend(git::protection(&spec.root));
    if spec.state.starts_with(&spec.root) {
        mounts.push(Mount::Hidden(spec.state.clone()));
    }
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_of_etc_is_in_the_list() {
        for name in ETC.iter().chain(&ETC_NETWORK) {
            for secret in ["shadow", "gshadow", "ssl/private", "sudoers", "ssh", "machine-secret", "krb5.keytab"] {
                assert!(!Path::new(secret).starts_with(name), "{name} shows {secret}");
            }
        }
    }

    #[test]
    fn the_temporary_folder_never_covers_the_root() {
        assert_eq!(temp(Path::new("/home/me/project")), Path::new("/tmp"));
        assert_eq!(temp(Path::new("/tmp/project")), Path::new("/tmp"));
        assert_eq!(temp(Path::new("/tmp")), Path::new("/run/tmp"));
    }
}
