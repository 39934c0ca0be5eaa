//! Token counts of a script that sets none: bytes / 4, at least 1.

use crate::model::{AskedCall, ModelRequest};

/// Returns the tokens of a whole request.
pub(super) fn of_request(request: &ModelRequest) -> i64 {
    let messages = request.messages.iter().map(|message| {
        let calls: usize =
            message.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len()).sum();
        message.content.len() + calls
    });
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len());
    tokens(request.system.len() + messages.sum::<usize>() + tools.sum::<usize>())
}

/// Returns the tokens of a whole answer.
pub(super) fn of_answer(content: Option<&str>, calls: &[AskedCall]) -> i64 {
    let calls: usize = calls.iter().map(|call| call.name.len() + call.arguments.to_string().len()).sum();
    tokens(content.map_or(0, str::len) + calls)
}

fn tokens(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(4)).unwrap_or(i64::MAX).max(1)
}
