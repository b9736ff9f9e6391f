//! A process whose memory is locked for as long as a file does not answer: `hung-holder FILE NAME`.
//!
//! One thread reads a page of the mapped file and waits for it with the lock of the process's
//! memory held; another wants that lock for writing, so that everybody else has to wait behind it:
//! also those who read `environ` or `cmdline`. The first thread, whose state is the process's,
//! sleeps an ordinary sleep.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

const PAGE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, name] = args.as_slice() else { panic!("usage: hung-holder FILE NAME") };
    fs::write("/proc/self/comm", name).expect("a name");
    let file = File::open(path).expect("the file");
    // SAFETY: a mapping where the kernel likes it.
    let page = unsafe { mmap(None, PAGE, ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE, &file, 0) };
    let page = page.expect("a mapping").as_ptr() as usize;
    let mapper = thread::spawn(map);
    thread::spawn(move || {
        // SAFETY: the page is mapped, and not unmapped before the end.
        unsafe { std::ptr::read_volatile(page as *const u8) }
    });
    mapper.join().expect("to be killed");
}

/// Maps and unmaps, until the lock is held by the other.
fn map() {
    loop {
        // SAFETY: memory of nobody else.
        unsafe {
            let (read, own) = (ProtFlags::PROT_READ, MapFlags::MAP_PRIVATE);
            let page = mmap_anonymous(None, PAGE, read, own).expect("memory");
            munmap(page, PAGE.get()).expect("the same");
        }
        thread::sleep(Duration::from_millis(100));
    }
}
