//! NORM: the job's arguments become canonical messages (OSSA §1.2).

use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::{Phase, RawJson};

const VERSION: i64 = 1;

/// What NORM leaves; the messages themselves are rows of their own.
#[derive(Debug, Serialize, Deserialize)]
pub struct NormBody {
    /// How many messages the input became.
    pub messages: usize,
}

/// Runs NORM: the first turn takes the job's input, later ones have none.
///
/// # Errors
/// None that a test could provoke; the signature is that of every phase.
pub fn run(turn: &mut Turn) -> Result<(), Stop> {
    let inputs = if turn.position.turn == 1 { vec![normalized(&turn.job.args)] } else { Vec::new() };
    let body = NormBody { messages: inputs.len() };
    for message in inputs {
        turn.say(message);
    }
    turn.complete_phase(Phase::Norm, VERSION, &body, (0, 0), Value::Null)
}

/// One string is the user's text; anything else is given to the model as the JSON that was sent.
fn normalized(args: &RawJson) -> Message {
    let items: Vec<RawJson> = args.parse().unwrap_or_default();
    let (text, format) = match items.as_slice() {
        [] => (String::new(), "text/plain"),
        [single] => match single.parse::<String>() {
            Ok(text) => (text, "text/plain"),
            Err(_) => (single.as_str().to_owned(), "application/json"),
        },
        _ => (args.as_str().to_owned(), "application/json"),
    };
    Message { original_format: Some(format.to_owned()), ..Message::text(Role::User, text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_original_format_is_kept() {
        let normalized = |args: Value| normalized(&RawJson::of(&args));
        let text = normalized(json!(["hello"]));
        assert_eq!((text.content.as_str(), text.original_format.as_deref()), ("hello", Some("text/plain")));
        let object = normalized(json!([{"a": 1}]));
        assert_eq!(
            (object.content.as_str(), object.original_format.as_deref()),
            ("{\"a\":1}", Some("application/json"))
        );
        assert_eq!(normalized(json!(["a", 2])).content, "[\"a\",2]");
        assert_eq!(normalized(json!([])).content, "");
    }
}
