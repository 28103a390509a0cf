//! What an answer holds: a sentence, or a file, which is read as it is sent and not before.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// The most bytes of a file in memory, for each connection.
const PIECE: u64 = 64 << 10;

/// The content of an answer, with the bytes that are still to be sent.
pub(super) struct Content {
    source: Source,
    left: u64,
}

enum Source {
    Text(&'static str),
    File(File),
}

impl Content {
    pub(super) fn text(text: &'static str) -> Self {
        Self { source: Source::Text(text), left: text.len() as u64 }
    }

    /// The file as long as it is now.
    pub(super) fn file(file: File) -> io::Result<Self> {
        let left = file.metadata()?.len();
        Ok(Self { source: Source::File(file), left })
    }

    fn piece(&mut self) -> io::Result<Bytes> {
        match &mut self.source {
            Source::Text(text) => Ok(Bytes::from_static(text.as_bytes())),
            Source::File(file) => {
                let mut piece = Vec::new();
                file.take(PIECE.min(self.left)).read_to_end(&mut piece)?;
                // The length was promised.
                if piece.is_empty() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(Bytes::from(piece)) }
            }
        }
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = self.piece();
        self.left -= piece.as_ref().map_or(self.left, |piece| piece.len() as u64);
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
