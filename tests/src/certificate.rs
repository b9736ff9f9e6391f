//! A certificate for `localhost` and the authority that signed it, made with openssl.

use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The files; dropping it removes them.
#[derive(Debug)]
pub struct Certificate {
    directory: TempDir,
}

impl Certificate {
    /// Makes one that is valid for two days.
    ///
    /// # Panics
    /// If openssl does not.
    pub fn make() -> Certificate {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        let openssl = |args: &[&str]| {
            let status = Command::new("openssl")
                .args(args)
                .current_dir(directory.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            assert!(status.is_ok_and(|status| status.success()), "openssl {args:?}");
        };
        let authority =
            ["-x509", "-days", "2", "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem"];
        openssl(&[&["req"], &key[..], &authority].concat());
        let names =
            ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
        let extensions = ["-addext", "basicConstraints=CA:FALSE"];
        let signed = ["-x509", "-days", "2", "-CA", "ca.pem", "-CAkey", "ca.key"];
        let files = ["-keyout", "server.key", "-out", "server.pem"];
        openssl(&[&["req"], &key[..], &signed, &names, &extensions, &files].concat());
        Certificate { directory }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    /// The certificate of the authority.
    pub fn authority(&self) -> String {
        self.path("ca.pem")
    }

    /// The certificate.
    pub fn file(&self) -> String {
        self.path("server.pem")
    }

    /// Its key.
    pub fn key(&self) -> String {
        self.path("server.key")
    }
}
