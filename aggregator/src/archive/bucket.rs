//! Object storage that speaks S3. Objects come whole or not at all, and what was put is there for
//! the next who asks: the archive needs no more of it. There is no rename: it is a copy, then a
//! delete.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path as Key;
use object_store::{
    ClientConfigKey, Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig, UpdateVersion,
};
use steward_common::causes::with_causes;
use tempfile::NamedTempFile;

use super::ArchiveError;
use super::shelf::{Before, Item, Shelf, at};
use crate::config::S3;
use crate::driver::Driver;

/// What goes over the network at a time; larger files go in several parts. S3 wants 5 MiB at least.
const PIECE: u64 = 8 << 20;

/// How long one request may take: a piece over a slow line.
const LIMIT: &str = "120s";

/// How long it may take to be connected.
const CONNECT_LIMIT: &str = "10s";

/// How often a request that failed is made again, and for how long.
const RETRIES: RetryLimits = RetryLimits { times: 5, within: Duration::from_secs(180) };

/// How often an object that changes while it is read is read anew.
const TRIES: usize = 10;

struct RetryLimits {
    times: usize,
    within: Duration,
}

/// A bucket, or a part of one.
pub struct Bucket {
    store: Arc<AmazonS3>,
    driver: Driver,
    name: String,
    /// What all keys begin with; empty, or without a slash at its end.
    prefix: String,
}

impl Bucket {
    /// The objects of a bucket whose keys begin with `prefix`; nothing is asked yet.
    ///
    /// # Errors
    /// If the settings make no sense or a file with a key cannot be read.
    pub fn new(name: &str, prefix: &str, settings: &S3) -> Result<Bucket, ArchiveError> {
        let address = PathBuf::from(format!("s3://{name}/{prefix}"));
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(name)
            // One object at a time is deleted anyway, and not every service knows the other way.
            .with_disable_bulk_delete(true)
            .with_retry(RetryConfig {
                max_retries: RETRIES.times,
                retry_timeout: RETRIES.within,
                ..RetryConfig::default()
            });
        for (key, value) in
            [(ClientConfigKey::Timeout, LIMIT), (ClientConfigKey::ConnectTimeout, CONNECT_LIMIT)]
        {
            builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
        }
        if settings.allow_http {
            builder = builder.with_allow_http(true);
        }
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint.trim_end_matches('/'));
        }
        if let Some(region) = &settings.region {
            builder = builder.with_region(region);
        }
        if let Some(path) = &settings.access_key_file {
            builder = builder.with_access_key_id(secret(path)?);
        }
        if let Some(path) = &settings.secret_key_file {
            builder = builder.with_secret_access_key(secret(path)?);
        }
        let is_set = |key| builder.get_config_value(&key).is_some();
        let half =
            is_set(AmazonS3ConfigKey::AccessKeyId) != is_set(AmazonS3ConfigKey::SecretAccessKey);
        let store = builder.build().map_err(|error| match half {
            // The service may have both, from its environment.
            true => at(&address)(closed(&error)),
            false => refused(&address, &error),
        })?;
        let driver = Driver::start().map_err(at(&address))?;
        Ok(Bucket {
            store: Arc::new(store),
            driver,
            name: name.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    fn key(&self, name: &str) -> Result<Key, ArchiveError> {
        let text = [self.prefix.as_str(), name].join("/");
        Key::parse(text.trim_start_matches('/')).map_err(|error| ArchiveError::Content {
            path: self.address(name),
            why: format!("no object can have this name: {}", with_causes(&error)),
        })
    }

    /// Waits for an answer about an object.
    fn ask<T: Send + 'static>(
        &self,
        name: &str,
        question: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Failure> {
        let path = self.address(name);
        match self.driver.wait(question) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error @ Error::NotFound { .. })) if !no_bucket(&error) => {
                Err(Failure::Missing(refused(&path, &error)))
            }
            Some(Err(error @ (Error::Precondition { .. } | Error::AlreadyExists { .. }))) => {
                Err(Failure::Changed(refused(&path, &error)))
            }
            Some(Err(error)) => Err(Failure::Other(refused(&path, &error))),
            None => Err(Failure::Other(at(&path)(io::Error::other("the request was given up")))),
        }
    }

    /// Uploads a file in parts; it is there once the last of them is.
    fn upload(&self, file: &mut File, bytes: u64, name: &str) -> Result<(), Failure> {
        let path = self.address(name);
        let (store, key) = (Arc::clone(&self.store), self.key(name)?);
        let mut upload = self.ask(name, async move { store.put_multipart(&key).await })?;
        let mut send = || -> Result<(), Failure> {
            let mut left = bytes;
            while left > 0 {
                let piece = read_piece(file, left.min(PIECE)).map_err(at(&path))?;
                left -= left.min(PIECE);
                self.ask(name, upload.put_part(piece.into()))?;
            }
            Ok(())
        };
        let sent = send();
        // What an upload that failed left behind costs money until it is given up.
        let end = async move {
            match sent {
                Ok(()) => upload.complete().await.map(|_| Ok(())),
                Err(failure) => {
                    let given_up = upload.abort().await;
                    if let Err(error) = given_up {
                        tracing::warn!(%error, "parts of an upload that failed stay behind");
                    }
                    Ok(Err(failure))
                }
            }
        };
        self.ask(name, end)?
    }

    /// What stands under a name.
    fn tag(&self, name: &str) -> Result<Before, ArchiveError> {
        let (store, key) = (Arc::clone(&self.store), self.key(name)?);
        match self.ask(name, async move { store.head(&key).await }) {
            Ok(found) => Ok(Before::File(found.e_tag)),
            Err(Failure::Missing(_)) => Ok(Before::Nothing),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Puts an object over another, which must still be there; its ETag.
    fn put_over(
        &self,
        bytes: Vec<u8>,
        name: &str,
        before: &Before,
    ) -> Result<Option<String>, Failure> {
        let mode = match before {
            Before::Nothing => PutMode::Create,
            Before::File(Some(tag)) => {
                PutMode::Update(UpdateVersion { e_tag: Some(tag.clone()), version: None })
            }
            // A service that names no versions cannot compare them.
            Before::File(None) => PutMode::Overwrite,
        };
        let (store, key) = (Arc::clone(&self.store), self.key(name)?);
        let (payload, options) = (PutPayload::from(bytes.clone()), PutOptions::from(mode.clone()));
        let put = async move { store.put_opts(&key, payload, options).await };
        match self.ask(name, put) {
            // It says that it does not know conditions; the doctor tells what that means.
            Err(Failure::Other(error)) if mode != PutMode::Overwrite && is_unknown(&error) => {
                self.put_over(bytes, name, &Before::File(None))
            }
            end => Ok(end?.e_tag),
        }
    }

    /// The object as it was at one moment; its ETag.
    fn download(&self, name: &str, to: &mut File) -> Result<Option<String>, Failure> {
        let path = self.address(name);
        let key = self.key(name)?;
        let (mut from, mut tag): (u64, Option<String>) = (0, None);
        loop {
            let options =
                GetOptions::new().with_range(Some(from..from + PIECE)).with_if_match(tag.clone());
            let (store, key) = (Arc::clone(&self.store), key.clone());
            let (bytes, size, found) = self.ask(name, async move {
                let answer = store.get_opts(&key, options).await?;
                let (size, tag) = (answer.meta.size, answer.meta.e_tag.clone());
                Ok((answer.bytes().await?, size, tag))
            })?;
            to.write_all(&bytes).map_err(at(&path))?;
            from += bytes.len() as u64;
            tag = found;
            if from >= size {
                return Ok(tag);
            }
            if bytes.is_empty() {
                let short = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(Failure::Other(at(&path)(short)));
            }
        }
    }
}

impl Shelf for Bucket {
    fn address(&self, name: &str) -> PathBuf {
        let parts = [self.name.as_str(), &self.prefix, name];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        PathBuf::from(format!("s3://{}", parts.join("/")))
    }

    fn scratch(&self) -> Result<NamedTempFile, ArchiveError> {
        let directory = std::env::temp_dir();
        tempfile::Builder::new().prefix("steward-").tempfile_in(&directory).map_err(at(&directory))
    }

    fn put(&self, mut file: NamedTempFile, name: &str) -> Result<(), ArchiveError> {
        let path = file.path().to_owned();
        let file = file.as_file_mut();
        let bytes = file.seek(SeekFrom::End(0)).map_err(at(&path))?;
        file.rewind().map_err(at(&path))?;
        if bytes > PIECE {
            return Ok(self.upload(file, bytes, name)?);
        }
        let payload: PutPayload = read_piece(file, bytes).map_err(at(&path))?.into();
        let (store, key) = (Arc::clone(&self.store), self.key(name)?);
        Ok(self.ask(name, async move { store.put(&key, payload).await.map(|_| ()) })?)
    }

    fn open(&self, name: &str) -> Result<Option<File>, ArchiveError> {
        Ok(self.open_stamped(name)?.map(|(file, _)| file))
    }

    fn open_stamped(&self, name: &str) -> Result<Option<(File, Option<String>)>, ArchiveError> {
        let directory = std::env::temp_dir();
        let mut tries = 0;
        loop {
            // It has no name: it goes with the last who reads it.
            let mut file = tempfile::tempfile_in(&directory).map_err(at(&directory))?;
            tries += 1;
            match self.download(name, &mut file) {
                Ok(tag) => {
                    file.rewind().map_err(at(&directory))?;
                    return Ok(Some((file, tag)));
                }
                Err(Failure::Missing(_)) => return Ok(None),
                Err(Failure::Changed(_)) if tries < TRIES => {}
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    fn replace(
        &self,
        mut file: NamedTempFile,
        name: &str,
        before: &Before,
    ) -> Result<Option<String>, ArchiveError> {
        let path = file.path().to_owned();
        let file = file.as_file_mut();
        let bytes = file.seek(SeekFrom::End(0)).map_err(at(&path))?;
        file.rewind().map_err(at(&path))?;
        let overtaken = || ArchiveError::Overtaken { path: self.address(name) };
        if bytes > PIECE {
            // What goes in parts has no condition: all that can be done is to look before.
            if self.tag(name)? != *before {
                return Err(overtaken());
            }
            self.upload(file, bytes, name)?;
            return Ok(match self.tag(name)? {
                Before::File(tag) => tag,
                Before::Nothing => None,
            });
        }
        let payload = read_piece(file, bytes).map_err(at(&path))?;
        match self.put_over(payload, name, before) {
            Err(Failure::Changed(_)) => Err(overtaken()),
            end => Ok(end?),
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn keeps_apart(&self) -> Result<bool, ArchiveError> {
        let name = format!("{}/tried-{}", super::STAGING, std::process::id());
        self.put_over(b"1".to_vec(), &name, &Before::File(None))?;
        let other = Before::File(Some("\"0\"".to_owned()));
        let kept = [&Before::Nothing, &other]
            .map(|before| self.put_over(b"2".to_vec(), &name, before))
            .into_iter()
            .all(|end| matches!(end, Err(Failure::Changed(_))));
        self.delete(&name)?;
        Ok(kept)
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), ArchiveError> {
        let (store, source, target) = (Arc::clone(&self.store), self.key(from)?, self.key(to)?);
        match self.ask(from, async move { store.copy(&source, &target).await }) {
            Ok(()) => self.delete(from),
            Err(Failure::Missing(missing)) => {
                let (store, target) = (Arc::clone(&self.store), self.key(to)?);
                match self.ask(to, async move { store.head(&target).await }) {
                    Ok(_) => Ok(()),
                    Err(Failure::Missing(_)) => Err(missing),
                    Err(failure) => Err(failure.into()),
                }
            }
            Err(failure) => Err(failure.into()),
        }
    }

    fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        let (store, key) = (Arc::clone(&self.store), self.key(name)?);
        match self.ask(name, async move { store.delete(&key).await }) {
            Ok(()) | Err(Failure::Missing(_)) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<Item>, ArchiveError> {
        let own = if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) };
        let mut found = Vec::new();
        let mut page = None;
        loop {
            let (store, begin) = (Arc::clone(&self.store), format!("{own}{prefix}/"));
            let options = PaginatedListOptions { page_token: page, ..Default::default() };
            let answer =
                self.ask(prefix, async move { store.list_paginated(Some(&begin), options).await })?;
            found.extend(answer.result.objects.into_iter().filter_map(|object| {
                let name = object.location.as_ref().strip_prefix(&own)?.to_owned();
                Some(Item { name, bytes: object.size })
            }));
            page = answer.page_token;
            if page.is_none() {
                break;
            }
        }
        found.sort();
        Ok(found)
    }
}

/// Why there is no answer, as far as it makes a difference.
enum Failure {
    /// There is no such object.
    Missing(ArchiveError),
    /// It is another one than before.
    Changed(ArchiveError),
    /// Anything else.
    Other(ArchiveError),
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Failure {
        Failure::Other(error)
    }
}

impl From<Failure> for ArchiveError {
    fn from(failure: Failure) -> ArchiveError {
        match failure {
            Failure::Missing(error) | Failure::Changed(error) | Failure::Other(error) => error,
        }
    }
}

/// Whether it is not the object that is missing: an archive that is not there yet is empty, but one
/// whose bucket is not there is a mistake.
fn no_bucket(error: &Error) -> bool {
    with_causes(error).contains("NoSuchBucket")
}

/// Whether the service does not know what it was asked for.
fn is_unknown(error: &ArchiveError) -> bool {
    let text = error.to_string();
    text.contains("NotImplemented") || text.contains("501 ")
}

fn refused(path: &Path, error: &Error) -> ArchiveError {
    let is_closed = match error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => true,
        error => has_no_keys(&with_causes(error)),
    };
    at(path)(if is_closed { closed(error) } else { io::Error::other(with_causes(error)) })
}

/// What is not for us is so in a bucket as in a directory.
fn closed(error: &Error) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, with_causes(error))
}

/// Whether there are no keys: who has none of his own is asked for those of the machine, at
/// addresses of Amazon's, which only machines of a cloud have.
fn has_no_keys(error: &str) -> bool {
    ["/latest/api/token", "/latest/meta-data/iam/"].iter().any(|path| error.contains(path))
}

fn read_piece(file: &mut File, bytes: u64) -> io::Result<Vec<u8>> {
    let mut piece = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
    file.take(bytes).read_to_end(&mut piece)?;
    if piece.len() as u64 == bytes { Ok(piece) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A secret from its file, without the end of the line.
fn secret(path: &Path) -> Result<String, ArchiveError> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    let text = text.trim();
    if text.is_empty() {
        let why = "it is empty; expected a key".to_owned();
        return Err(ArchiveError::Content { path: path.to_owned(), why });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
