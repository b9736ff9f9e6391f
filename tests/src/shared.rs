//! Directories that the test users may write to.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// A directory for everyone, on a real file system; dropping it removes it.
///
/// # Panics
/// If it cannot be made.
pub fn directory() -> TempDir {
    tempfile::Builder::new()
        .prefix("steward-e2e-")
        .permissions(Permissions::from_mode(0o1777))
        .tempdir_in("/var/tmp")
        .and_then(|dir| {
            // The mask of this process may have taken bits away.
            fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).map(|()| dir)
        })
        .unwrap_or_else(|error| panic!("/var/tmp: {error}"))
}
