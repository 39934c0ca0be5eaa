//! NORM: the job's arguments become canonical messages (OSSA §1.2).

use crate::turn::state::{JobFacts, Turn};
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
    let inputs = if turn.position.turn == 1 { vec![input(&turn.job)] } else { Vec::new() };
    let body = NormBody { messages: inputs.len() };
    for message in inputs {
        turn.say(message);
    }
    turn.complete_phase(Phase::Norm, VERSION, &body, (0, 0), Value::Null)
}

/// What the client sent, and below it what the jobs before this one returned, when it is a step of a workflow.
fn input(job: &JobFacts) -> Message {
    let sent = normalized(&job.args);
    match &job.parent_results {
        None => sent,
        Some(results) => with_results(sent, results),
    }
}

fn with_results(sent: Message, results: &[String]) -> Message {
    let results = format!("Results of the jobs before this one: [{}]", results.join(","));
    let content = if sent.content.is_empty() { results } else { format!("{}\n\n{results}", sent.content) };
    Message { content, original_format: Some("text/plain".to_owned()), ..sent }
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
    fn what_the_jobs_before_returned_stands_below_what_was_sent() {
        let results = ["{\"n\":1.50}".to_owned(), "null".to_owned()];
        let below = "Results of the jobs before this one: [{\"n\":1.50},null]";
        let message = with_results(normalized(&RawJson::of(&json!(["Sum up"]))), &results);
        assert_eq!(message.content, format!("Sum up\n\n{below}"));
        assert_eq!(with_results(normalized(&RawJson::of(&json!([]))), &results).content, below);
    }

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
