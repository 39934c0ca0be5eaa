//! Pieces of models' text, between the events of a run. They are sent after the `completion_call` of their answer, and
//! never after the answer itself.

use super::run::{AnswerKey, Caller, RunFrame, What};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use turnstone_domain::{EngagementId, JobId};
use turnstone_store::Piece;

/// Pieces that wait for their `completion_call`; older ones are not sent.
const HELD: usize = 64;

/// A call to a model whose event was read.
struct Called {
    turn: i64,
    request: Option<JobId>,
    caller: Arc<Caller>,
    /// True if its answer was read as well.
    answered: bool,
}

/// The state of one stream about models that are writing.
#[derive(Default)]
pub(super) struct Spoken {
    calls: HashMap<EngagementId, Called>,
    held: VecDeque<Arc<Piece>>,
}

impl Spoken {
    /// Notes an event that was read.
    pub fn note(&mut self, frame: &RunFrame) {
        match &frame.what {
            What::Calls(answer, caller) => {
                let AnswerKey { engagement, turn } = answer.clone();
                let (request, caller) = (frame.request.clone(), Arc::new(caller.clone()));
                self.calls.insert(engagement, Called { turn, request, caller, answered: false });
            }
            What::Answers(answer) => {
                if let Some(call) = self.calls.get_mut(&answer.engagement) {
                    call.answered |= call.turn <= answer.turn;
                }
            }
            What::Ends => {
                self.calls.retain(|_, call| call.request != frame.request);
                // Most streams wait long for the next request, or have no further one.
                self.calls.shrink_to_fit();
            }
            What::Asks | What::Other => {}
        }
    }

    /// Adds a piece that was received.
    pub fn hear(&mut self, piece: Arc<Piece>) {
        if self.held.len() >= HELD {
            self.held.pop_front();
        }
        self.held.push_back(piece);
    }

    /// Returns the next piece that may be sent, with its request and the model's caller.
    pub fn next(&mut self) -> Option<(Arc<Piece>, Option<JobId>, Arc<Caller>)> {
        let calls = &self.calls;
        let call = |piece: &Piece| calls.get(&piece.engagement);
        self.held.retain(|piece| {
            call(piece)
                .is_none_or(|call| piece.turn > call.turn || (piece.turn == call.turn && !call.answered))
        });
        let ready = |piece: &Arc<Piece>| call(piece).is_some_and(|call| call.turn == piece.turn);
        let at = self.held.iter().position(ready)?;
        let piece = self.held.remove(at)?;
        let call = self.calls.get(&piece.engagement)?;
        Some((piece, call.request.clone(), Arc::clone(&call.caller)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(what: What) -> RunFrame {
        RunFrame { id: 1, request: Some("j".into()), body: String::new(), what }
    }

    fn answer(turn: i64) -> AnswerKey {
        AnswerKey { engagement: "e".into(), turn }
    }

    fn called(turn: i64) -> RunFrame {
        let caller = Caller { agent: "a".into(), depth: 0, request_id: "r".into() };
        frame(What::Calls(answer(turn), caller))
    }

    fn piece(turn: i64, offset: u64) -> Arc<Piece> {
        let text = "x".to_owned();
        Arc::new(Piece { engagement: "e".into(), job: "j".into(), turn, offset, text })
    }

    fn offsets(spoken: &mut Spoken) -> Vec<u64> {
        std::iter::from_fn(|| spoken.next().map(|(piece, ..)| piece.offset)).collect()
    }

    #[test]
    fn a_piece_stands_between_the_call_and_the_answer() {
        let mut spoken = Spoken::default();
        spoken.hear(piece(1, 0));
        spoken.hear(piece(1, 1));
        assert!(spoken.next().is_none(), "no reader knows the call yet");
        spoken.note(&called(1));
        assert_eq!(offsets(&mut spoken), [0, 1]);
        spoken.hear(piece(1, 2));
        spoken.hear(piece(2, 0));
        spoken.note(&frame(What::Answers(answer(1))));
        assert!(spoken.next().is_none(), "one is late and one early");
        spoken.note(&called(2));
        assert_eq!(offsets(&mut spoken), [0]);
    }

    #[test]
    fn what_waits_for_its_call_is_bounded() {
        let mut spoken = Spoken::default();
        (0..1000).for_each(|offset| spoken.hear(piece(1, offset)));
        assert_eq!(spoken.held.len(), HELD);
    }
}
