//! The directory service: address and name of a user.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ldap3::{
    Ldap, LdapConnAsync, LdapConnSettings, Scope, SearchEntry, SearchOptions, ldap_escape,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Mutex;

use crate::config;

/// What is known of a user there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The address as it stands there.
    pub mail: Option<String>,
    /// The full name as it stands there.
    pub name: Option<String>,
}

/// The directory service, with a connection that is kept.
pub struct Directory {
    url: String,
    base: String,
    starttls: bool,
    timeout: Duration,
    bind: Option<(String, String)>,
    tls: Option<Arc<ClientConfig>>,
    uid: String,
    mail: String,
    name: String,
    state: Mutex<State>,
}

/// For how long a service that did not answer is not asked again: each of many users would wait.
const PAUSE: Duration = Duration::from_secs(30);

/// The answer where more match than were asked for (sizeLimitExceeded).
const TOO_MANY: u32 = 4;

#[derive(Default)]
struct State {
    connection: Option<Ldap>,
    /// When it did not answer, and what was wrong.
    failed: Option<(Instant, String)>,
}

/// Without the password.
impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Directory {
    /// Prepares to ask; nothing is asked yet.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(config: &config::Ldap) -> Result<Directory, String> {
        let bind = match (&config.bind_dn, &config.password_file) {
            (Some(dn), Some(file)) => Some((dn.clone(), super::secret(file)?)),
            _ => None,
        };
        // The crate takes what the process has, and would fail where two are built in.
        let _already = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let tls = config.ca_file.as_deref().map(trusting).transpose()?;
        Ok(Directory {
            url: config.url.clone().unwrap_or_default(),
            base: config.base.clone().unwrap_or_default(),
            starttls: config.starttls,
            timeout: config.timeout.0,
            bind,
            tls,
            uid: config.uid.clone(),
            mail: config.mail.clone(),
            name: config.name.clone(),
            state: Mutex::new(State::default()),
        })
    }

    /// Looks for a user; `None` if there is none, or more than one.
    ///
    /// # Errors
    /// If the service does not answer.
    pub async fn find(&self, user: &str) -> Result<Option<Entry>, String> {
        let mut state = self.state.lock().await;
        if let Some((_, why)) = state.failed.as_ref().filter(|(when, _)| when.elapsed() < PAUSE) {
            return Err(why.clone());
        }
        // One that was kept may have been closed meanwhile: then once more with a new one.
        if let Some(connection) = state.connection.as_mut()
            && let Ok(found) = self.search(connection, user).await
        {
            return Ok(found);
        }
        *state = State::default();
        match self.ask_anew(user).await {
            Ok((connection, found)) => {
                state.connection = Some(connection);
                Ok(found)
            }
            Err(why) => {
                state.failed = Some((Instant::now(), why.clone()));
                Err(why)
            }
        }
    }

    async fn ask_anew(&self, user: &str) -> Result<(Ldap, Option<Entry>), String> {
        let mut connection = self.connect().await?;
        let found = self.search(&mut connection, user).await?;
        Ok((connection, found))
    }

    async fn connect(&self) -> Result<Ldap, String> {
        let mut settings =
            LdapConnSettings::new().set_conn_timeout(self.timeout).set_starttls(self.starttls);
        if let Some(tls) = &self.tls {
            settings = settings.set_config(tls.clone());
        }
        let connecting = LdapConnAsync::with_settings(settings, &self.url);
        let (connection, mut ldap) = self.in_time(connecting).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.drive().await {
                tracing::debug!("mail.ldap: {error}");
            }
        });
        if let Some((dn, password)) = &self.bind {
            let bound = self.in_time(ldap.simple_bind(dn, password)).await?;
            bound.success().map_err(|error| self.wrong(&error))?;
        }
        Ok(ldap)
    }

    async fn search(&self, ldap: &mut Ldap, user: &str) -> Result<Option<Entry>, String> {
        let filter = format!("({}={})", self.uid, ldap_escape(user));
        ldap.with_search_options(SearchOptions::new().sizelimit(2));
        let attributes = [self.mail.as_str(), self.name.as_str()];
        let asked = ldap.search(&self.base, Scope::Subtree, &filter, attributes);
        let found = self.in_time(asked).await?;
        if found.1.rc == TOO_MANY {
            return Ok(None);
        }
        let (entries, _) = found.success().map_err(|error| self.wrong(&error))?;
        let [entry] = entries.as_slice() else { return Ok(None) };
        let entry = SearchEntry::construct(entry.clone());
        let first = |wanted: &str| {
            let values = entry.attrs.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            values.and_then(|(_, values)| values.first()).filter(|text| !text.is_empty()).cloned()
        };
        Ok(Some(Entry { mail: first(&self.mail), name: first(&self.name) }))
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = ldap3::result::Result<T>>,
    ) -> Result<T, String> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done.map_err(|error| self.wrong(&error)),
            Err(_) => Err(format!("mail.ldap: {}: no answer in time", self.url)),
        }
    }

    fn wrong(&self, error: &ldap3::LdapError) -> String {
        format!("mail.ldap: {}: {error}", self.url)
    }
}

/// TLS that trusts what the file holds, and nobody else.
fn trusting(file: &Path) -> Result<Arc<ClientConfig>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))? {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"holds no certificate"));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| wrong(&error))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
