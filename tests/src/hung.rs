//! A file system that stops answering: a FUSE server that speaks just enough of the kernel's
//! protocol to have one file opened, and then takes every request and answers none.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// The size of its one file.
pub const SIZE: u64 = 1 << 20;

const ROOT: u64 = 1;
const FILE: u64 = 2;

// Of include/uapi/linux/fuse.h.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const INIT: u32 = 26;
const BATCH_FORGET: u32 = 42;

/// The mount; dropping it breaks the connection, which wakes whoever sleeps in it, and removes it.
#[derive(Debug)]
pub struct Hung {
    point: PathBuf,
    unanswered: Arc<AtomicU32>,
    server: Option<JoinHandle<()>>,
}

impl Hung {
    /// Mounts it on `point`. It answers until `opens` opens are done; of the reads that come then,
    /// it fails the first `errors` and never answers another request of any kind.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn mount(point: &Path, opens: u32, errors: u32) -> Self {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.unwrap_or_else(|error| panic!("/dev/fuse: {error}"));
        let fd = device.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other");
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("steward-hung"), point, Some("fuse"), flags, Some(options.as_str()))
            .unwrap_or_else(|error| panic!("mount {}: {error}", point.display()));
        let unanswered = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&unanswered);
        let server = std::thread::spawn(move || serve(device, opens, errors, &count));
        Self { point: point.to_path_buf(), unanswered, server: Some(server) }
    }

    /// Its one file.
    pub fn file(&self) -> PathBuf {
        self.point.join("file")
    }

    /// How many requests it has left without an answer.
    pub fn unanswered(&self) -> u32 {
        self.unanswered.load(Ordering::Relaxed)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        // By force: that breaks the connection first, and so does not wait for it.
        if let Err(error) = umount2(&self.point, MntFlags::MNT_FORCE | MntFlags::MNT_DETACH) {
            eprintln!("umount {}: {error}", self.point.display());
        }
        if let Some(server) = self.server.take() {
            // It panicked if it did; the mount is gone either way.
            let _panicked = server.join();
        }
    }
}

fn serve(mut device: File, mut opens: u32, mut errors: u32, unanswered: &AtomicU32) {
    // The kernel wants room for its largest request.
    let mut request = vec![0; 256 * 1024];
    loop {
        let length = match device.read(&mut request) {
            Ok(length) => length,
            Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => return,
            // A request that was taken back before it was read.
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT as i32) => continue,
            Err(error) => panic!("/dev/fuse: {error}"),
        };
        let header = request.get(..length).and_then(|bytes| bytes.first_chunk::<40>());
        let Some(header) = header else { panic!("a request of {length} bytes") };
        let operation = u32::from_ne_bytes([header[4], header[5], header[6], header[7]]);
        let number = |at: usize| header[at..at + 8].first_chunk().map(|b| u64::from_ne_bytes(*b));
        let (Some(unique), Some(node)) = (number(8), number(16)) else { unreachable!("8 bytes") };
        if matches!(operation, FORGET | BATCH_FORGET) {
            continue;
        }
        let answer = if opens > 0 {
            opens -= u32::from(operation == OPEN);
            answer(operation, node)
        } else if errors > 0 && operation == READ {
            errors -= 1;
            Err(Errno::EIO)
        } else {
            unanswered.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let (error, body) = match answer {
            Ok(body) => (0, body),
            Err(error) => (-(error as i32), Vec::new()),
        };
        let length = u32::try_from(16 + body.len()).unwrap_or_else(|_| unreachable!("small"));
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(error.to_ne_bytes());
        bytes.extend(unique.to_ne_bytes());
        bytes.extend(body);
        // Whoever asked may have been killed meanwhile.
        let _gone = device.write(&bytes);
    }
}

fn answer(operation: u32, node: u64) -> Result<Vec<u8>, Errno> {
    let mut body = Vec::new();
    match operation {
        INIT => {
            // Version 7.31, no read-ahead, no options, 4 KiB at a time.
            words(&mut body, &[7, 31, 0, 0, 0, 4096]);
            body.resize(64, 0);
        }
        LOOKUP if node == ROOT => {
            // Valid for no time: whoever asks again is not answered.
            longs(&mut body, &[FILE, 0, 0, 0, 0]);
            attributes(&mut body, FILE);
        }
        GETATTR => {
            longs(&mut body, &[0, 0]);
            attributes(&mut body, node);
        }
        OPEN => longs(&mut body, &[0, 0]),
        _ => return Err(Errno::ENOSYS),
    }
    Ok(body)
}

/// `struct fuse_attr`.
fn attributes(body: &mut Vec<u8>, node: u64) {
    let (mode, size) = if node == ROOT { (0o040_755, 0) } else { (0o100_644, SIZE) };
    longs(body, &[node, size, size / 512, 0, 0, 0]);
    words(body, &[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]);
}

fn longs(body: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| body.extend(value.to_ne_bytes()));
}

fn words(body: &mut Vec<u8>, values: &[u32]) {
    values.iter().for_each(|value| body.extend(value.to_ne_bytes()));
}
