//! A long list as JSON, written while it is sent: a hundred thousand rows are never in memory at once.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body, Bytes, Frame};
use serde::Serialize;

/// How much is written at a time.
const CHUNK: usize = 64 * 1024;

/// How rows stand in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// One object that holds a list.
    #[default]
    Object,
    /// A row a line, for stores and pipes.
    Lines,
}

/// The rows on their way.
struct Listing<I> {
    rows: I,
    shape: Shape,
    head: Option<Vec<u8>>,
    first: bool,
}

/// An answer with rows: `head` is what the object has beside its list `name`, and must be an object
/// with something in it.
pub fn answer<I, T>(shape: Shape, head: &impl Serialize, name: &str, rows: I) -> Response
where
    I: Iterator<Item = T> + Send + Unpin + 'static,
    T: Serialize,
{
    let kind = match shape {
        Shape::Object => "application/json",
        Shape::Lines => "application/x-ndjson",
    };
    let head = match shape {
        Shape::Lines => None,
        Shape::Object => {
            let mut text = serde_json::to_vec(head).unwrap_or_default();
            // Opens the object again for the list.
            text.pop();
            text.extend_from_slice(format!(",\"{name}\":[").as_bytes());
            Some(text)
        }
    };
    let body = axum::body::Body::new(Listing { rows, shape, head, first: true });
    ([(header::CONTENT_TYPE, kind)], body).into_response()
}

impl<I, T> Body for Listing<I>
where
    I: Iterator<Item = T> + Unpin,
    T: Serialize,
{
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        let mut text = Vec::new();
        if this.first
            && let Some(head) = this.head.as_ref()
        {
            text.extend_from_slice(head);
        }
        while text.len() < CHUNK {
            let Some(row) = this.rows.next() else {
                if this.head.take().is_some() {
                    text.extend_from_slice(b"]}\n");
                }
                break;
            };
            if !this.first && this.shape == Shape::Object {
                text.push(b',');
            }
            this.first = false;
            // Rows are plain structs of text and numbers: writing one to memory cannot fail.
            text.extend(serde_json::to_vec(&row).unwrap_or_default());
            if this.shape == Shape::Lines {
                text.push(b'\n');
            }
        }
        let frame = (!text.is_empty()).then(|| Ok(Frame::data(text.into())));
        Poll::Ready(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(shape: Shape, rows: u32) -> String {
        let head = serde_json::json!({"cluster": "c1"});
        let rows = (0..rows).map(|row| serde_json::json!({"job": row}));
        let mut body = answer(shape, &head, "jobs", rows).into_body();
        let mut text = Vec::new();
        while let Some(frame) =
            std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await
        {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() < 2 * CHUNK, "a bounded piece at a time");
            text.extend_from_slice(&data);
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn an_object_is_whole_json_however_many_rows_there_are() {
        assert_eq!(text(Shape::Object, 0).await, "{\"cluster\":\"c1\",\"jobs\":[]}\n");
        for rows in [1, 2, 20_000] {
            let json: serde_json::Value =
                serde_json::from_str(&text(Shape::Object, rows).await).unwrap();
            let jobs = json["jobs"].as_array().unwrap();
            assert_eq!(jobs.len(), usize::try_from(rows).unwrap());
            assert_eq!(jobs.last().unwrap()["job"], rows - 1);
        }
    }

    #[tokio::test]
    async fn lines_are_a_row_each() {
        assert_eq!(text(Shape::Lines, 0).await, "");
        let text = text(Shape::Lines, 20_000).await;
        assert_eq!(text.lines().count(), 20_000);
        assert!(text.lines().all(|line| line.starts_with("{\"job\":")));
    }
}
