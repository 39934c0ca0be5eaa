//! The lines of a stream of server-sent events, with bounds for every sender.

use super::outbound::{self, BodyError};
use futures::{Stream, StreamExt, stream};
use reqwest::Response;

/// Returns the lines of a body, at most `held` bytes of one event and `wire` bytes in all. The event parser
/// receives one whole line at a time, because it scans its buffer again for every piece. It also fails if a
/// byte order mark is the first character of a stream.
pub fn lines(response: Response, held: usize, wire: usize) -> impl Stream<Item = Result<Vec<u8>, BodyError>> {
    let mut seen = 0_usize;
    let mut begun = Vec::new();
    // Bytes of the incomplete event.
    let mut event = 0_usize;
    let mut at_start = true;
    response.bytes_stream().flat_map(move |chunk| {
        let lines = chunk.map_err(|error| BodyError::Lost(outbound::describe(&error))).and_then(|chunk| {
            seen = seen.saturating_add(chunk.len());
            if seen > wire {
                return Err(BodyError::TooLarge(wire));
            }
            let mut lines = cut(&mut begun, &chunk);
            for line in &lines {
                event = if line.iter().all(u8::is_ascii_whitespace) { 0 } else { event + line.len() };
            }
            if event + begun.len() > held {
                return Err(BodyError::TooLarge(held));
            }
            if let Some(first) = lines.first_mut().filter(|_| at_start) {
                at_start = false;
                if let Some(rest) = first.strip_prefix(b"\xef\xbb\xbf") {
                    *first = rest.to_vec();
                }
            }
            Ok(lines)
        });
        stream::iter(match lines {
            Ok(lines) => lines.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    })
}

/// Returns the lines that `chunk` completes; the rest stays in `begun`.
fn cut(begun: &mut Vec<u8>, chunk: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
        begun.extend_from_slice(piece);
        if piece.ends_with(b"\n") {
            lines.push(std::mem::take(begun));
        }
    }
    lines
}
