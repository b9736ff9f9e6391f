//! A real LDAP server of a test's own.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::gateway::own_port;
use crate::wait;

/// Who may look: everybody else may not.
pub const READER: &str = "cn=reader,dc=example,dc=org";
/// The password of that one.
pub const PASSWORD: &str = "only for the test";
/// Below what entry users are.
pub const BASE: &str = "ou=people,dc=example,dc=org";

/// A running server; dropping it ends it.
#[derive(Debug)]
pub struct Slapd {
    directory: TempDir,
    port: u16,
    child: Child,
}

impl Slapd {
    /// Starts one with these users: entries of LDIF, each the attributes of one `uid`. With a
    /// certificate it takes StartTLS, and refuses passwords without.
    ///
    /// # Panics
    /// If it does not come up.
    pub fn start(users: &[(&str, &str)], certificate: Option<&Certificate>) -> Slapd {
        let directory = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let path = |name: &str| directory.path().join(name).display().to_string();
        let tls = certificate.map_or_else(String::new, |certificate| {
            format!(
                "TLSCertificateFile {}\nTLSCertificateKeyFile {}\nsecurity simple_bind=128\n",
                certificate.file(),
                certificate.key()
            )
        });
        let config = format!(
            "include /etc/ldap/schema/core.schema\n\
             include /etc/ldap/schema/cosine.schema\n\
             include /etc/ldap/schema/inetorgperson.schema\n\
             attributetype ( 1.3.6.1.4.1.99999.1 NAME 'fullname' SUP name )\n\
             attributetype ( 1.3.6.1.4.1.99999.2 NAME 'contact' SUP name )\n\
             objectclass ( 1.3.6.1.4.1.99999.3 NAME 'odd' SUP top AUXILIARY \
             MAY ( fullname $ contact ) )\n\
             modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {}\n{tls}\
             database mdb\nsuffix \"dc=example,dc=org\"\nrootdn \"cn=admin,dc=example,dc=org\"\n\
             directory {}\n\
             access to attrs=userPassword by anonymous auth by * none\n\
             access to * by dn.exact=\"{READER}\" read by * none\n",
            path("pid"),
            path("db"),
        );
        let write = |name: &str, text: &str| {
            fs::write(path(name), text).unwrap_or_else(|error| panic!("{name}: {error}"));
        };
        fs::create_dir(path("db")).unwrap_or_else(|error| panic!("db: {error}"));
        write("slapd.conf", &config);
        write("data.ldif", &entries(users));
        let added = Command::new("/usr/sbin/slapadd")
            .args(["-f", &path("slapd.conf"), "-l", &path("data.ldif")])
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("slapadd: {error}"));
        assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
        let port = own_port();
        let child = Command::new("/usr/sbin/slapd")
            .args(["-d", "0", "-f", &path("slapd.conf"), "-h", &format!("ldap://127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("slapd: {error}"));
        let mut password = fs::File::create(path("password")).unwrap_or_else(|e| panic!("{e}"));
        writeln!(password, "{PASSWORD}").unwrap_or_else(|error| panic!("password: {error}"));
        wait::until_true("slapd listens", Duration::from_secs(30), || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Slapd { directory, port, child }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("ldap://localhost:{}", self.port)
    }

    /// A file with [`PASSWORD`].
    pub fn password_file(&self) -> String {
        self.directory.path().join("password").display().to_string()
    }
}

fn entries(users: &[(&str, &str)]) -> String {
    let mut text = format!(
        "dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\n\
         dc: example\n\n\
         dn: {READER}\nobjectClass: applicationProcess\nobjectClass: simpleSecurityObject\n\
         cn: reader\nuserPassword: {PASSWORD}\n\n\
         dn: {BASE}\nobjectClass: organizationalUnit\nou: people\n\n"
    );
    for (uid, more) in users {
        text += &format!(
            "dn: uid={uid},{BASE}\nobjectClass: inetOrgPerson\nobjectClass: odd\nuid: {uid}\n\
             cn: {uid}\nsn: {uid}\n{more}\n"
        );
        text.push('\n');
    }
    text
}

impl Drop for Slapd {
    fn drop(&mut self) {
        // Already gone is as good.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
