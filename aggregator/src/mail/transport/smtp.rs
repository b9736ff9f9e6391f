//! A mail server, with connections that are kept and used again.
//!
//! Each step of a delivery is made here and not by the library, because what an error means depends on
//! how far the text of the mail was.

use std::time::Duration;

use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use tokio::sync::Mutex;

use super::SendError;
use crate::config::{self, Tls};
use crate::mail::secret;
use crate::output::plain::{cut, visible};

/// How many connections are kept.
const KEPT: usize = 2;

/// A mail server.
pub struct Server {
    host: String,
    port: u16,
    tls: Tls,
    parameters: Option<TlsParameters>,
    credentials: Option<Credentials>,
    timeout: Duration,
    idle: Mutex<Vec<AsyncSmtpConnection>>,
}

/// Without the password.
impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Prepares to connect.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn open(smtp: &config::Smtp) -> Result<Server, String> {
        let credentials = match (&smtp.user, &smtp.password_file) {
            (Some(user), Some(file)) => Some(Credentials::new(user.clone(), secret(file)?)),
            _ => None,
        };
        let parameters = if smtp.tls == Tls::None { None } else { Some(parameters(smtp)?) };
        Ok(Server {
            host: smtp.host.clone(),
            port: smtp.port(),
            tls: smtp.tls,
            parameters,
            credentials,
            timeout: smtp.timeout.0,
            idle: Mutex::new(Vec::new()),
        })
    }

    /// Hands a mail over for one recipient.
    ///
    /// # Errors
    /// If it was not taken, or nobody knows.
    pub async fn send(&self, raw: &[u8], from: &Address, to: &Address) -> Result<(), SendError> {
        let mut connection = self.connection().await?;
        let sent = self.deliver(&mut connection, raw, from, to).await;
        // After a refusal the server waits for the next mail, once this one is forgotten.
        let usable = match &sent {
            Ok(()) => true,
            Err(SendError::Refused { .. }) => self.reset(&mut connection).await,
            Err(_) => false,
        };
        let mut idle = self.idle.lock().await;
        if usable && idle.len() < KEPT {
            idle.push(connection);
        }
        sent
    }

    async fn deliver(
        &self,
        connection: &mut AsyncSmtpConnection,
        raw: &[u8],
        from: &Address,
        to: &Address,
    ) -> Result<(), SendError> {
        let mut options = Vec::new();
        let info = connection.server_info();
        let odd = |address: &Address| !AsRef::<str>::as_ref(address).is_ascii();
        if odd(to) || odd(from) {
            if !info.supports_feature(Extension::SmtpUtfEight) {
                let said = "the server takes no addresses but those of ASCII".to_owned();
                return Err(SendError::Refused { permanent: true, said });
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        if !raw.is_ascii() && info.supports_feature(Extension::EightBitMime) {
            options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        // Whom the server does not let send, it lets send to nobody.
        self.step(connection.command(Mail::new(Some(from.clone()), options)))
            .await
            .map_err(|failed| SendError::down(self.told(&failed)))?;
        self.step(connection.command(Rcpt::new(to.clone(), Vec::new())))
            .await
            .map_err(|failed| self.before_text(&failed))?;
        self.step(connection.command(Data)).await.map_err(|failed| self.before_text(&failed))?;
        self.step(connection.message(raw)).await.map_err(|failed| match &failed {
            Failed::Smtp(error) if error.status().is_some() => self.before_text(&failed),
            _ => SendError::unsure(self.told(&failed)),
        })?;
        Ok(())
    }

    /// What an error means as long as the server has not taken anything: an answer is about the
    /// recipient, unless the server is about to go.
    fn before_text(&self, failed: &Failed) -> SendError {
        let said = self.told(failed);
        match failed {
            Failed::Smtp(error) if error.status().is_some_and(|code| u16::from(code) != 421) => {
                SendError::Refused { permanent: error.is_permanent(), said }
            }
            _ => SendError::down(said),
        }
    }

    async fn connection(&self) -> Result<AsyncSmtpConnection, SendError> {
        loop {
            let Some(mut kept) = self.idle.lock().await.pop() else { break };
            let alive = tokio::time::timeout(self.timeout, kept.test_connected());
            if alive.await.unwrap_or(false) {
                return Ok(kept);
            }
        }
        self.connect().await.map_err(|failed| SendError::down(self.told(&failed)))
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Failed> {
        let hello = ClientId::default();
        let host = self.host.trim_matches(['[', ']']).to_owned();
        let first = if self.tls == Tls::Tls { self.parameters.clone() } else { None };
        let connecting = AsyncSmtpConnection::connect_tokio1(
            (host, self.port),
            Some(self.timeout),
            &hello,
            first,
            None,
        );
        let mut connection = self.step(connecting).await?;
        if let (Tls::Starttls, Some(parameters)) = (self.tls, &self.parameters) {
            self.step(connection.starttls(parameters.clone(), &hello)).await?;
        }
        if let Some(credentials) = &self.credentials {
            self.step(connection.auth(DEFAULT_MECHANISMS, credentials)).await?;
        }
        Ok(connection)
    }

    async fn reset(&self, connection: &mut AsyncSmtpConnection) -> bool {
        self.step(connection.command("RSET\r\n")).await.is_ok()
    }

    async fn step<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Failed> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(done) => done.map_err(Failed::Smtp),
            Err(_) => Err(Failed::Slow),
        }
    }

    fn told(&self, failed: &Failed) -> String {
        let (host, port) = (&self.host, self.port);
        match failed {
            Failed::Slow => format!("{host}:{port}: no answer within {:?}", self.timeout),
            Failed::Smtp(error) => {
                format!("{host}:{port}: {}", cut(&visible(&error.to_string()), 300))
            }
        }
    }
}

enum Failed {
    Smtp(Error),
    Slow,
}

fn parameters(smtp: &config::Smtp) -> Result<TlsParameters, String> {
    let mut builder = TlsParameters::builder(smtp.host.clone());
    if let Some(file) = &smtp.ca_file {
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let pem = std::fs::read(file).map_err(|error| wrong(&error))?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| wrong(&error))?;
        builder =
            builder.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    builder.build_rustls().map_err(|error| format!("mail.smtp: {error}"))
}

#[cfg(test)]
mod tests;
