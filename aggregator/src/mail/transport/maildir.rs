//! A directory that gets the mails, each whole or not at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use lettre::Address;

use super::SendError;
use crate::mail::letter::MessageId;

/// A directory that gets the mails.
#[derive(Clone, Debug)]
pub struct Maildir {
    path: PathBuf,
}

impl Maildir {
    /// Makes it if need be.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(path: PathBuf) -> Result<Maildir, String> {
        for inner in ["tmp", "new", "cur"] {
            let inner = path.join(inner);
            fs::create_dir_all(&inner)
                .map_err(|error| format!("mail.maildir: {}: {error}", inner.display()))?;
        }
        Ok(Maildir { path })
    }

    /// Puts a mail there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub async fn send(&self, raw: &[u8], to: &Address) -> Result<(), SendError> {
        let mut text = format!("Delivered-To: {to}\n").into_bytes();
        text.extend(raw.iter().copied().filter(|byte| *byte != b'\r'));
        let (path, to) = (self.path.clone(), to.clone());
        let work = tokio::task::spawn_blocking(move || put(&path, &text, &to));
        let done = work.await.map_err(|error| SendError::unsure(error.to_string()))?;
        done.map_err(|error| {
            SendError::down(format!("mail.maildir: {}: {error}", self.path.display()))
        })
    }
}

fn put(path: &Path, text: &[u8], to: &Address) -> std::io::Result<()> {
    let random = MessageId::random(to)?;
    let name = random.as_str().split('@').next().unwrap_or_default().to_owned();
    let name = format!("{}.steward", name);
    let (draft, done) = (path.join("tmp").join(&name), path.join("new").join(&name));
    let mut file = File::create_new(&draft)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let moved = written.and_then(|()| fs::rename(&draft, &done));
    if moved.is_err() {
        // Half a mail is of use to nobody; the error says enough.
        drop(fs::remove_file(&draft));
    }
    moved?;
    File::open(path.join("new"))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_there_whole_for_each_recipient() {
        let directory = tempfile::tempdir().unwrap();
        let maildir = Maildir::open(directory.path().join("mail")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for to in ["a@b.org", "c@d.org"] {
            runtime.block_on(maildir.send(b"X: y\r\n\r\nz\r\n", &to.parse().unwrap())).unwrap();
        }
        let mut texts: Vec<String> = fs::read_dir(directory.path().join("mail/new"))
            .unwrap()
            .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
            .collect();
        texts.sort();
        assert_eq!(
            texts,
            ["Delivered-To: a@b.org\nX: y\n\nz\n", "Delivered-To: c@d.org\nX: y\n\nz\n"]
        );
        assert_eq!(fs::read_dir(directory.path().join("mail/tmp")).unwrap().count(), 0);
        assert!(Maildir::open("/proc/no/such".into()).is_err());
    }
}
