//! What goes to the first process of a sandbox: the whole order, as bytes through its socket. Arguments and variables
//! would be seen by other users of the machine, and by the programs in between.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What the first process finds around itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ground {
    /// Namespaces and mounts that `bwrap` has made.
    Bubblewrap,
    /// Namespaces that this program has made; the mounts are the first process's own work.
    Namespaces,
    /// No namespaces: Landlock alone.
    Landlock,
    /// Nothing at all.
    Open,
}

impl Ground {
    /// Whether the end of the first process is the end of all others by the kernel's doing.
    pub(super) fn own_processes(self) -> bool {
        match self {
            Self::Bubblewrap | Self::Namespaces => true,
            Self::Landlock | Self::Open => false,
        }
    }

    /// Its name in the order.
    fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
            Self::Open => "open",
        }
    }

    /// The ground of a name.
    fn named(name: &[u8]) -> Option<Self> {
        [Self::Bubblewrap, Self::Namespaces, Self::Landlock, Self::Open]
            .into_iter()
            .find(|ground| ground.name().as_bytes() == name)
    }
}

/// The whole order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) ground: Ground,
    pub(super) root: PathBuf,
    pub(super) state: PathBuf,
    pub(super) cwd: PathBuf,
    /// The command's home; empty where the first process makes one.
    pub(super) home: PathBuf,
    /// The command's temporary folder; empty where the first process makes one.
    pub(super) temp: PathBuf,
    pub(super) readable: Vec<PathBuf>,
    pub(super) command: OsString,
    /// `NAME=value`, in this order.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) network: bool,
    pub(super) limits: Limits,
}

/// What a command may use up; units as in [`super::CommandSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) processes: u64,
    pub(super) memory: u64,
    pub(super) file_size: u64,
    pub(super) temporary: u64,
    pub(super) open_files: u64,
}

impl Spec {
    /// As fields, each ended by a NUL, behind their length in bytes (four of them, little end first).
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let mut put = |field: &[u8]| {
            body.extend_from_slice(field);
            body.push(0);
        };
        put(self.ground.name().as_bytes());
        for path in [&self.root, &self.state, &self.cwd, &self.home, &self.temp] {
            put(path.as_os_str().as_bytes());
        }
        put(self.command.as_bytes());
        put(if self.network { b"network" } else { b"" });
        let Limits { processes, memory, file_size, temporary, open_files } = self.limits;
        for number in [processes, memory, file_size, temporary, open_files] {
            put(number.to_string().as_bytes());
        }
        put(self.readable.len().to_string().as_bytes());
        for path in &self.readable {
            put(path.as_os_str().as_bytes());
        }
        for (name, value) in &self.env {
            put(name.as_bytes());
            put(value.as_bytes());
        }
        let mut bytes = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
        bytes.append(&mut body);
        bytes
    }

    /// Of the bytes behind the length; `None` for what [`Self::to_bytes`] did not make.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let mut fields = body.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let ground = Ground::named(fields.next()?)?;
        let [root, state, cwd, home, temp] =
            [path(&mut fields)?, path(&mut fields)?, path(&mut fields)?, path(&mut fields)?, path(&mut fields)?];
        let command = OsString::from_vec(fields.next()?.to_owned());
        let network = fields.next()? == b"network";
        let limits = Limits {
            processes: number(&mut fields)?,
            memory: number(&mut fields)?,
            file_size: number(&mut fields)?,
            temporary: number(&mut fields)?,
            open_files: number(&mut fields)?,
        };
        let readable = (0..number(&mut fields)?).map(|_| path(&mut fields)).collect::<Option<_>>()?;
        let mut env = Vec::new();
        while let Some(name) = fields.next() {
            env.push((OsString::from_vec(name.to_owned()), OsString::from_vec(fields.next()?.to_owned())));
        }
        Some(Self { ground, root, state, cwd, home, temp, readable, command, env, network, limits })
    }

    /// Whether a path is the root's and not the state folder's.
    pub(super) fn in_root(&self, path: &Path) -> bool {
        path.starts_with(&self.root) && !path.starts_with(&self.state)
    }
}

/// The next field as a path.
fn path<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<PathBuf> {
    Some(PathBuf::from(OsString::from_vec(fields.next()?.to_owned())))
}

/// The next field as a number.
fn number<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    str::from_utf8(fields.next()?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> Spec {
        Spec {
            ground: Ground::Namespaces,
            root: PathBuf::from(OsString::from_vec(b"/w\xff s".to_vec())),
            state: "/w/.state".into(),
            cwd: "/w/sub".into(),
            home: PathBuf::new(),
            temp: "/tmp".into(),
            readable: vec!["/opt".into(), "/nix".into()],
            command: "printf 'a\nb' # ü".into(),
            env: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
            network: true,
            limits: Limits { processes: 1, memory: 2, file_size: 3, temporary: 4, open_files: u64::MAX },
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for spec in [spec(), Spec { env: Vec::new(), readable: Vec::new(), network: false, ..spec() }] {
            let bytes = spec.to_bytes();
            assert_eq!(bytes[..4], u32::try_from(bytes.len() - 4).unwrap().to_le_bytes());
            assert_eq!(Spec::parse(&bytes[4..]), Some(spec));
        }
    }

    #[test]
    fn half_an_order_is_none() {
        let bytes = spec().to_bytes();
        for end in 4..bytes.len() - 12 {
            assert_eq!(Spec::parse(&bytes[4..end]), None, "{end} of {}", bytes.len());
        }
    }
}
