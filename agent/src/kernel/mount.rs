//! Mounts, from `/proc/PID/mountinfo`: which file system an open file is on, without touching it.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use procfs::process::Process;

use super::error::{Errors, ReadError, Reason};
use super::process::{Handle, from_procfs};

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where it is mounted.
    pub point: PathBuf,
    /// Its type: `ext4`, `lustre`, `nfs4`, …
    pub kind: String,
}

/// File systems of the kernel's own making, in which nobody keeps files.
const NOT_STORAGE: [&str; 15] = [
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "mqueue",
    "proc",
    "pstore",
    "securityfs",
    "sysfs",
    "tracefs",
];

impl Mount {
    /// Whether files on it are files to a user. Containers put a tmpfs on `/dev` itself; `/dev/shm`
    /// below it is a place for files.
    #[must_use]
    pub fn holds_files(&self) -> bool {
        !NOT_STORAGE.contains(&self.kind.as_str()) && self.point != Path::new("/dev")
    }
}

/// The mounts of one namespace by their id.
pub type Mounts = HashMap<u64, Mount>;

/// The mount tables of one scan: read when first needed, once for each mount namespace.
#[derive(Debug)]
pub struct MountTables {
    proc_root: PathBuf,
    host: OnceCell<Option<Mounts>>,
    by_namespace: HashMap<OsString, Rc<Mounts>>,
}

impl MountTables {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(proc_root: &Path) -> Self {
        let proc_root = proc_root.to_path_buf();
        Self { proc_root, host: OnceCell::new(), by_namespace: HashMap::new() }
    }

    /// The host's table; a descriptor may come from there even when its process moved on.
    fn host(&self) -> Option<&Mounts> {
        let read = || {
            // 1 is the host's first process; a container may hide it, and the agent's own will do.
            ["1", "self"].into_iter().find_map(|name| {
                let process = Process::new_with_root(self.proc_root.join(name)).ok()?;
                process.mountinfo().ok().map(table)
            })
        };
        self.host.get_or_init(read).as_ref()
    }

    /// The table of the namespace of `process`.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of(&mut self, process: &Handle) -> Result<Rc<Mounts>, ReadError> {
        let path = process.path("ns/mnt");
        let namespace = std::fs::read_link(&path).map_err(|e| ReadError::from_io(&path, e))?;
        let namespace = namespace.into_os_string();
        if let Some(known) = self.by_namespace.get(&namespace) {
            return Ok(Rc::clone(known));
        }
        let infos = process
            .procfs()
            .mountinfo()
            .map_err(|error| from_procfs(&process.path("mountinfo"), error))?;
        let table = Rc::new(table(infos));
        self.by_namespace.insert(namespace, Rc::clone(&table));
        Ok(table)
    }

    /// The mount with that id, in the process's namespace or else the host's; a host's table that
    /// cannot be read is counted.
    pub fn find<'a>(&'a self, own: &'a Mounts, id: u64, errors: &mut Errors) -> Option<&'a Mount> {
        if let Some(mount) = own.get(&id) {
            return Some(mount);
        }
        let host = self.host();
        if host.is_none() {
            errors.count(Reason::Io);
        }
        host?.get(&id)
    }
}

fn table(infos: procfs::process::MountInfos) -> Mounts {
    infos
        .into_iter()
        .filter_map(|info| {
            let id = u64::try_from(info.mnt_id).ok()?;
            Some((id, Mount { point: info.mount_point, kind: info.fs_type }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use procfs::FromRead;
    use procfs::process::MountInfos;

    proptest! {
        #[test]
        fn every_mount_is_found_by_its_id(
            kinds in proptest::collection::btree_map(0..i32::MAX, "[a-z][a-z0-9.]{0,8}", 0..20),
            point in "(/[a-z]{1,8}){1,4}", tags in "( (shared|master):[0-9]{1,3}){0,2}",
        ) {
            let lines = kinds.iter().map(|(id, kind)| {
                format!("{id} 1 0:29 / {point}/{id} rw,relatime{tags} - {kind} source rw\n")
            });
            let text: String = lines.collect();
            let table = table(MountInfos::from_read(text.as_bytes()).unwrap());
            prop_assert_eq!(table.len(), kinds.len());
            for (id, kind) in kinds {
                let expected = Mount { point: format!("{point}/{id}").into(), kind };
                prop_assert_eq!(table.get(&u64::try_from(id).unwrap()), Some(&expected));
            }
        }

        #[test]
        fn an_id_below_zero_is_no_mount(id in i32::MIN..0) {
            let text = format!("{id} 1 0:29 / /x rw - ext4 source rw\n");
            prop_assert!(table(MountInfos::from_read(text.as_bytes()).unwrap()).is_empty());
        }
    }
}
