//! The text of a recording: JSON with small values on one line, so that a change has a small diff.

use serde_json::Value;

/// The longest line, unless a single text is longer.
const WIDTH: usize = 240;

/// Returns the text of a recording.
pub fn render(value: &Value) -> String {
    written(value, 1) + "\n"
}

/// Returns the text of a value that is nested in `depth` others. Each long item of a list is on lines of its own, and
/// as many members of an object are on a line as fit.
fn written(value: &Value, depth: usize) -> String {
    let line = value.to_string();
    if line.len() <= WIDTH {
        return line;
    }
    let next = format!(",\n{}", " ".repeat(depth));
    let (open, lines, close) = match value {
        Value::Array(items) => ('[', items.iter().map(|item| written(item, depth + 1)).collect(), ']'),
        Value::Object(members) => {
            let mut lines: Vec<String> = Vec::new();
            for (name, member) in members {
                let member = format!("{}: {}", Value::from(name.as_str()), written(member, depth + 1));
                match lines.last_mut() {
                    Some(line)
                        if !member.contains('\n')
                            && line.len() + member.len() < WIDTH
                            && !line.contains('\n') =>
                    {
                        line.push_str(", ");
                        line.push_str(&member);
                    }
                    _ => lines.push(member),
                }
            }
            ('{', lines, '}')
        }
        _ => return line,
    };
    let begin = &next[1..];
    let end = &begin[..begin.len() - 1];
    format!("{open}{begin}{}{end}{close}", lines.join(&next))
}
