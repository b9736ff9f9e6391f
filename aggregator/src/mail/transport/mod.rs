//! The ways out: a mail server, a program, a directory. Each says what became of a mail.

mod maildir;
mod sendmail;
mod smtp;

use lettre::Address;

use crate::config;

/// What became of a mail that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// This recipient was refused; others may not be.
    #[error("refused: {said}")]
    Refused {
        /// Whether it makes no sense to try again.
        permanent: bool,
        /// What was said.
        said: String,
    },
    /// Nothing was handed over: the server cannot be reached, or does not let us in.
    #[error("{why}")]
    Down {
        /// Why.
        why: String,
    },
    /// The text was on its way when the connection was lost: nobody knows.
    #[error("it is not known whether it was taken: {why}")]
    Unsure {
        /// Why.
        why: String,
    },
}

impl SendError {
    fn down(why: impl Into<String>) -> SendError {
        SendError::Down { why: why.into() }
    }

    fn unsure(why: impl Into<String>) -> SendError {
        SendError::Unsure { why: why.into() }
    }
}

/// The way out that is configured.
#[derive(Debug)]
pub enum Transport {
    /// A mail server.
    Smtp(smtp::Server),
    /// A program.
    Sendmail(sendmail::Program),
    /// A directory.
    Maildir(maildir::Maildir),
    /// None: mails are written only.
    None,
}

impl Transport {
    /// Prepares it; nothing is connected yet.
    ///
    /// # Errors
    /// If a file that it needs cannot be read.
    pub fn open(mail: &config::Mail) -> Result<Transport, String> {
        Ok(match mail.transport {
            config::Transport::Smtp => Transport::Smtp(smtp::Server::open(&mail.smtp)?),
            config::Transport::Sendmail => {
                let limit = mail.smtp.timeout.0 * 2;
                Transport::Sendmail(sendmail::Program::new(mail.sendmail.clone(), limit))
            }
            config::Transport::Maildir => {
                let path = mail.maildir.clone().ok_or("mail.maildir: must name a directory")?;
                Transport::Maildir(maildir::Maildir::open(path)?)
            }
        })
    }

    /// Hands a mail over for one recipient.
    ///
    /// # Errors
    /// If it was not taken, or nobody knows.
    pub async fn send(&self, raw: &[u8], from: &Address, to: &Address) -> Result<(), SendError> {
        match self {
            Transport::Smtp(server) => server.send(raw, from, to).await,
            Transport::Sendmail(program) => program.send(raw, from, to).await,
            Transport::Maildir(maildir) => maildir.send(raw, to).await,
            Transport::None => Err(SendError::down("mails are written here, not sent")),
        }
    }
}
