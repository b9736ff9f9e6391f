//! Someone who may never answer, asked on a thread of its own, one question at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// A thread that answers questions. It ends with this value; or, if it hangs, with the process: a
/// call into the kernel or the system's directory cannot be called back.
#[derive(Debug)]
pub struct Worker<Q, A> {
    questions: Sender<Q>,
    answers: Receiver<A>,
    busy: bool,
    /// Whether the thread is at an answer.
    at_work: Arc<AtomicBool>,
}

impl<Q: Send + 'static, A: Send + 'static> Worker<Q, A> {
    /// A worker that answers by `answer`.
    #[must_use]
    pub fn new(mut answer: impl FnMut(Q) -> A + Send + 'static) -> Self {
        let (questions, inbox) = channel::<Q>();
        let (outbox, answers) = channel();
        let at_work = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&at_work);
        // Without a thread the inbox is gone, and every question is refused.
        let _unless_refused = thread::Builder::new().spawn(move || {
            for question in inbox {
                if outbox.send(answer(question)).is_err() {
                    break;
                }
                flag.store(false, Ordering::SeqCst);
            }
        });
        Self { questions, answers, busy: false, at_work }
    }

    /// Whether a question has not been answered yet.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.busy
    }

    /// Whether the answer has not even been found yet.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.busy && self.at_work.load(Ordering::SeqCst)
    }

    /// Asks; false if a question is open already, or there is no thread to ask.
    pub fn ask(&mut self, question: Q) -> bool {
        if self.busy {
            return false;
        }
        self.at_work.store(true, Ordering::SeqCst);
        self.busy = self.questions.send(question).is_ok();
        self.busy
    }

    /// The answer, if it comes within `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<A> {
        let answer = self.answers.recv_timeout(patience).ok()?;
        self.busy = false;
        Some(answer)
    }
}
