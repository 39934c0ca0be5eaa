//! A server's list of tools, page by page. An entry that cannot be read loses no other.

use super::message::notes_of;
use rmcp::model::{ServerResult, Tool};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The most tools that are read of a list, and the most pages.
const MOST_TOOLS: usize = 1000;
const MOST_PAGES: usize = 100;

/// The members of an entry without which a tool can be called.
const OPTIONAL: [&str; 6] = ["icons", "_meta", "title", "annotations", "outputSchema", "description"];

/// The tools that a server has listed so far.
#[derive(Default)]
pub(super) struct ListedTools {
    /// Its tools.
    pub(super) tools: Vec<Tool>,
    /// The entries, and the parts of the list, that could not be read: a name and a sentence.
    pub(super) unread: Vec<(String, String)>,
    cursors: HashSet<String>,
    pages: usize,
    entries: usize,
}

impl ListedTools {
    /// Returns true if a page was read.
    pub(super) fn is_begun(&self) -> bool {
        self.pages > 0
    }

    /// Returns the list, which ends here although the server has more.
    pub(super) fn broken_off(mut self, why: &str) -> Self {
        self.end(&format!("page {} cannot be read: {why}", self.pages + 1));
        self
    }

    /// Reads a page; returns the cursor of the next one.
    ///
    /// # Errors
    /// A sentence: the answer is no page.
    pub(super) fn take(&mut self, answer: ServerResult) -> Result<Option<String>, String> {
        let next = match answer {
            ServerResult::ListToolsResult(page) => {
                let notes = notes_of(page.meta.as_ref().map(|meta| &meta.0));
                self.unread.extend(notes.into_iter().map(|note| (LIST.to_owned(), note)));
                self.entries += page.tools.len();
                self.tools.extend(page.tools);
                page.next_cursor
            }
            other => self.take_entries(serde_json::to_value(other).unwrap_or_default())?,
        };
        self.pages += 1;
        if self.tools.len() > MOST_TOOLS {
            self.tools.truncate(MOST_TOOLS);
            self.end(&format!("it has more than {MOST_TOOLS} tools"));
            return Ok(None);
        }
        let Some(next) = next.filter(|next| !next.is_empty()) else { return Ok(None) };
        if !self.cursors.insert(next.clone()) {
            self.end("a cursor is repeated");
            return Ok(None);
        }
        if self.pages == MOST_PAGES {
            self.end(&format!("it has more than {MOST_PAGES} pages"));
            return Ok(None);
        }
        Ok(Some(next))
    }

    /// Reads a page that has an entry, or a member, of another form than the protocol's.
    fn take_entries(&mut self, mut page: Value) -> Result<Option<String>, String> {
        let Some(entries) = page["tools"].as_array_mut().map(std::mem::take) else {
            return Err("it answered something else than a list of tools".to_owned());
        };
        for entry in entries {
            self.entries += 1;
            let name = entry["name"].as_str().map_or_else(|| format!("#{}", self.entries), str::to_owned);
            match read_entry(entry) {
                Ok((tool, ignored)) => {
                    self.tools.push(tool);
                    let notes = ignored.into_iter().map(|member| format!("its `{member}` cannot be read"));
                    self.unread.extend(notes.map(|note| (name.clone(), note)));
                }
                Err(why) => self.unread.push((name, format!("its entry in the list cannot be read: {why}"))),
            }
        }
        self.unread
            .extend(notes_of(page["_meta"].as_object()).into_iter().map(|note| (LIST.to_owned(), note)));
        match &page["nextCursor"] {
            Value::Null => Ok(None),
            Value::String(cursor) => Ok(Some(cursor.clone())),
            _ => {
                self.end("its cursor is no text");
                Ok(None)
            }
        }
    }

    fn end(&mut self, why: &str) {
        let sentence = format!("the list ends after {} entries: {why}", self.entries);
        self.unread.push((LIST.to_owned(), sentence));
    }
}

/// The name under which a problem of the whole list is reported.
const LIST: &str = "*";

/// Reads an entry, without the members that cannot be read; returns their names as well.
fn read_entry(entry: Value) -> Result<(Tool, Vec<&'static str>), String> {
    let Value::Object(entry) = entry else { return Err("it is no object".to_owned()) };
    let read = |entry: &Map<String, Value>| serde_json::from_value::<Tool>(entry.clone().into());
    let why = match read(&entry) {
        Ok(tool) => return Ok((tool, Vec::new())),
        Err(error) => error.to_string(),
    };
    let (mut kept, mut rest) = (Map::new(), entry);
    let optional: Vec<_> =
        OPTIONAL.into_iter().filter_map(|name| Some((name, rest.shift_remove(name)?))).collect();
    kept.append(&mut rest);
    read(&kept).map_err(|_| why)?;
    let mut ignored = Vec::new();
    for (name, value) in optional {
        kept.insert(name.to_owned(), value);
        if read(&kept).is_err() {
            kept.shift_remove(name);
            ignored.push(name);
        }
    }
    read(&kept).map(|tool| (tool, ignored)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(value: Value) -> ServerResult {
        serde_json::from_value(value).unwrap()
    }

    fn names(listed: &ListedTools) -> Vec<&str> {
        listed.tools.iter().map(|tool| &*tool.name).collect()
    }

    #[test]
    fn an_unreadable_entry_loses_no_other() {
        let mut listed = ListedTools::default();
        let any = json!({"type": "object"});
        let page = page(json!({"tools": [
            {"name": "a", "inputSchema": any},
            {"inputSchema": any},
            {"name": "b"},
            {"name": 7, "inputSchema": any},
            "c",
            {"name": "d", "inputSchema": any, "description": 7, "annotations": {"readOnlyHint": "yes"}, "title": "D"},
        ], "nextCursor": "2"}));
        assert_eq!(listed.take(page), Ok(Some("2".to_owned())));
        assert_eq!(names(&listed), ["a", "d"]);
        assert_eq!(listed.tools[1].title.as_deref(), Some("D"));
        let unread: Vec<&str> = listed.unread.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(unread, ["#2", "b", "#4", "#5", "d", "d"], "{:?}", listed.unread);
    }

    #[test]
    fn a_list_ends_with_a_cursor_that_leads_no_further() {
        let any = json!([{"name": "a", "inputSchema": {"type": "object"}}]);
        for (cursors, unread) in [(vec!["", ""], 0), (vec!["x", "x"], 1), (vec!["x", "y", "x"], 1)] {
            let mut listed = ListedTools::default();
            let last = cursors.iter().find_map(|cursor| {
                let page = page(json!({"tools": any, "nextCursor": cursor}));
                listed.take(page).unwrap().is_none().then_some(())
            });
            assert_eq!((last, listed.unread.len()), (Some(()), unread), "{cursors:?}");
        }
        let mut listed = ListedTools::default();
        assert_eq!(listed.take(page(json!({"tools": any, "nextCursor": 7}))), Ok(None));
        assert_eq!((names(&listed), listed.unread.len()), (vec!["a"], 1));
        assert!(ListedTools::default().take(page(json!({"things": []}))).is_err());
    }
}
