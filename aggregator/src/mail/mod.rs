//! Mail: from what is to be said to what a mail server has taken.
//!
//! ```text
//! Letter ─ [`Post::write`]: templates, words of the language, charts ─> Message ─ [`Post::send`] ─> SMTP, sendmail, maildir
//! ```
//!
//! Nothing here decides whether something is sent: that is the part of `notice` and `cancel`.
