//! How the documentation and the comments are written: short lines, short sentences, and the field's words.

use crate::house::{files, none, read};
use std::path::{Path, PathBuf};

/// The longest line of a page, in characters. Tables and lines of guarantees may be longer.
const LINE: usize = 130;
/// The most words of a sentence.
const SENTENCE: usize = 30;

/// Pages that a test writes from the code.
const GENERATED: &[&str] = &["docs/EVENTS.md", "docs/LINT.md", "docs/OAS-ROWS.md", "docs/OSSA-ROWS.md"];

/// Idioms, and the field's terms.
const IDIOMS: &[(&str, &str)] = &[
    ("told", "receives, is notified, is reported"),
    ("tells", "emits, publishes, returns"),
    ("nobody", "no reviewer, no worker, no client"),
    ("somebody", "a reviewer, a client, another process"),
    ("everybody", "every client, every process"),
    ("whoever", "the worker, the client, any process"),
    ("hears", "receives"),
    ("rung", "notified"),
    ("bells", "notifications"),
    ("called off", "cancelled"),
    ("call off", "cancel"),
    ("stand in", "is stored in, replaces"),
    ("stands in", "is stored in, replaces"),
    ("stand for", "replaces"),
    ("stands for", "replaces"),
    ("in hand", "holds, leases"),
    ("in vain", "without effect"),
    ("goes on", "resumes, continues"),
    ("went on", "resumed, continued"),
    ("abroad", "on another server, remote"),
    ("door", "endpoint, protocol"),
    ("doors", "endpoints, protocols"),
];

/// Files in which an idiom is meant literally: file, and idiom.
const ALLOWED: &[(&str, &str)] = &[];

/// How no doc comment begins, because it then says nothing about the item itself.
const BEGINNINGS: &[&str] = &["What", "Whether", "Who"];

/// Returns the pages that are written by hand.
fn pages() -> Vec<PathBuf> {
    files("", ".md")
        .into_iter()
        .filter(|page| !GENERATED.iter().any(|entry| page == Path::new(entry)))
        .collect()
}

/// Returns the Rust files whose comments are checked.
fn sources() -> Vec<PathBuf> {
    files("", ".rs")
}

/// A text on consecutive lines, with the number of its first line.
struct Paragraph {
    line: usize,
    text: String,
}

/// Collects lines into paragraphs. Code blocks and tables are left out; items of lists and headings begin a new one.
#[derive(Default)]
struct Collector {
    done: Vec<Paragraph>,
    open: Option<Paragraph>,
    in_code: bool,
}

impl Collector {
    fn line(&mut self, number: usize, line: &str) {
        let line = line.trim();
        if line.starts_with("```") {
            self.in_code = !self.in_code;
            return self.end();
        }
        if self.in_code || line.is_empty() || line.starts_with('|') {
            return self.end();
        }
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbered = first.strip_suffix('.').is_some_and(|number| number.parse::<u32>().is_ok());
        let begins = matches!(first, "-" | "*") || first.starts_with('#') || numbered;
        if begins {
            self.end();
        }
        let text = if begins { rest } else { line };
        // The tests of a guarantee are no part of its sentence.
        let text = text.split(" [test](").next().unwrap_or_default();
        match &mut self.open {
            Some(open) => open.text.extend([" ", text]),
            None => self.open = Some(Paragraph { line: number, text: text.to_owned() }),
        }
        if first.starts_with('#') {
            self.end();
        }
    }

    fn end(&mut self) {
        self.done.extend(self.open.take());
    }

    fn finish(mut self) -> Vec<Paragraph> {
        self.end();
        self.done
    }
}

/// Returns the paragraphs of a page.
fn page_paragraphs(page: &Path) -> Vec<Paragraph> {
    let mut collector = Collector::default();
    read(page).lines().enumerate().for_each(|(at, line)| collector.line(at + 1, line));
    collector.finish()
}

/// Returns the text of a comment line and its marker, such as `///`.
fn comment(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    ["///", "//!", "//"].into_iter().find_map(|marker| {
        let text = line.strip_prefix(marker)?;
        (marker != "///" || !text.starts_with('/')).then_some((marker, text))
    })
}

/// Returns the paragraphs of a file's comments; of its doc comments alone when `docs` is true.
fn comment_paragraphs(path: &Path, docs: bool) -> Vec<Paragraph> {
    let mut done = Vec::new();
    let mut collector = Collector::default();
    for (at, line) in read(path).lines().enumerate() {
        match comment(line).filter(|(marker, _)| !docs || *marker != "//") {
            Some((_, text)) => collector.line(at + 1, text),
            None => done.extend(std::mem::take(&mut collector).finish()),
        }
    }
    done.extend(collector.finish());
    done
}

/// The endings of other files with comments, and the markers of their comments.
const OTHERS: &[(&str, &str)] =
    &[(".sql", "--"), (".py", "#"), (".sh", "#"), (".toml", "#"), (".yaml", "#"), (".service", "#")];

/// Returns the paragraphs of the comments of a file that is not Rust.
fn other_paragraphs(path: &Path, marker: &str) -> Vec<Paragraph> {
    let mut done = Vec::new();
    let mut collector = Collector::default();
    for (at, line) in read(path).lines().enumerate() {
        match line.trim_start().strip_prefix(marker) {
            Some(text) => collector.line(at + 1, text),
            None => done.extend(std::mem::take(&mut collector).finish()),
        }
    }
    done.extend(collector.finish());
    done
}

/// Returns a text without code and without the targets of links.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "X" });
    }
    let mut without = String::new();
    let mut rest = plain.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        without.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    without + rest
}

/// Returns the sentences of a text. Each ends at a full stop, a question mark or an exclamation mark, before a capital
/// letter or a digit.
fn sentences(text: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let words: Vec<&str> = text.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let last = found.last_mut().expect("one");
        last.push_str(word);
        last.push(' ');
        let ends = word.trim_end_matches(['*', ')', '"', '”', '_']).ends_with(['.', '?', '!']);
        let capital = |next: &&str| {
            let next = next.trim_start_matches(['*', '(', '"', '“', '[', '_']);
            next.starts_with(|first: char| first.is_uppercase() || first.is_ascii_digit())
        };
        if ends && words.get(at + 1).is_some_and(capital) {
            found.push(String::new());
        }
    }
    found
}

/// Returns the number of words of a sentence: runs of characters with a letter or a digit.
fn words_of(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// Adds the sentences of a text that are too long.
fn check_sentences(path: &Path, paragraphs: Vec<Paragraph>, problems: &mut Vec<String>) {
    for Paragraph { line, text } in paragraphs {
        for sentence in sentences(&plain(&text)).iter().filter(|sentence| words_of(sentence) > SENTENCE) {
            let words = words_of(sentence);
            problems.push(format!("{}:{line}: {words} words: {}", path.display(), sentence.trim()));
        }
    }
}

/// Adds the idioms of a text.
fn check_idioms(path: &Path, paragraphs: Vec<Paragraph>, problems: &mut Vec<String>) {
    for Paragraph { line, text } in paragraphs {
        let text = plain(&text).to_lowercase();
        let words: Vec<&str> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let text = format!(" {} ", words.join(" "));
        for (idiom, instead) in IDIOMS.iter().filter(|(idiom, _)| text.contains(&format!(" {idiom} "))) {
            let allowed = |(file, word): &(&str, &str)| path == Path::new(file) && word == idiom;
            if !ALLOWED.iter().any(allowed) {
                problems.push(format!("{}:{line}: `{idiom}`: write {instead}", path.display()));
            }
        }
    }
}

#[test]
fn no_line_of_a_page_is_too_long() {
    let mut problems = Vec::new();
    for page in pages() {
        let mut in_code = false;
        for (at, line) in read(&page).lines().enumerate() {
            in_code ^= line.trim_start().starts_with("```");
            let exempt = in_code || line.starts_with('|') || line.contains(" [test](");
            let length = line.chars().count();
            if length > LINE && !exempt {
                problems.push(format!("{}:{}: {length} characters, at most {LINE}", page.display(), at + 1));
            }
        }
    }
    none("A line of a page is too long to be read beside another window:", &problems);
}

#[test]
fn no_sentence_of_a_page_is_too_long() {
    let mut problems = Vec::new();
    for page in pages() {
        check_sentences(&page, page_paragraphs(&page), &mut problems);
    }
    none(&format!("Split each sentence of more than {SENTENCE} words:"), &problems);
}

#[test]
fn no_sentence_of_a_doc_comment_is_too_long() {
    let mut problems = Vec::new();
    for path in sources() {
        check_sentences(&path, comment_paragraphs(&path, true), &mut problems);
    }
    none(&format!("Split each sentence of more than {SENTENCE} words:"), &problems);
}

#[test]
fn pages_and_comments_use_the_terms_of_the_field() {
    let mut problems = Vec::new();
    for page in pages() {
        check_idioms(&page, page_paragraphs(&page), &mut problems);
    }
    for path in sources() {
        check_idioms(&path, comment_paragraphs(&path, false), &mut problems);
    }
    for (ending, marker) in OTHERS {
        for path in files("", ending) {
            check_idioms(&path, other_paragraphs(&path, marker), &mut problems);
        }
    }
    none("Write the field's term instead of an idiom:", &problems);
}

#[test]
fn no_doc_comment_begins_with_a_question_word() {
    let mut problems = Vec::new();
    for path in sources() {
        let mut before = false;
        for (at, line) in read(&path).lines().enumerate() {
            let text = comment(line).filter(|(marker, _)| *marker != "//").map(|(_, text)| text.trim());
            let first = text.and_then(|text| text.split(' ').next()).unwrap_or_default();
            if !before && BEGINNINGS.contains(&first) {
                problems.push(format!(
                    "{}:{}: begin with a noun or a verb, not `{first}`",
                    path.display(),
                    at + 1
                ));
            }
            before = text.is_some();
        }
    }
    none("A doc comment begins like a question:", &problems);
}

#[test]
fn sentences_idioms_and_code_are_distinguished() {
    let text = "A `job. Not` ends. It has [a page](https://a.example/B. C) of 2.5 words! Is it? yes";
    let found = sentences(&plain(text));
    let found: Vec<&str> = found.iter().map(|sentence| sentence.trim()).collect();
    assert_eq!(found, ["A X ends.", "It has [a page of 2.5 words!", "Is it? yes"]);
    assert_eq!(found.iter().map(|sentence| words_of(sentence)).collect::<Vec<_>>(), [3, 7, 3]);

    let paragraph = |text: &str| vec![Paragraph { line: 7, text: text.to_owned() }];
    let (path, mut problems) = (Path::new("a.md"), Vec::new());
    check_idioms(path, paragraph("A worker is `told` of pandoors."), &mut problems);
    assert_eq!(problems, [""; 0]);
    check_idioms(path, paragraph("The work\u{a0}goes on, by another Door."), &mut problems);
    assert_eq!(problems.len(), 2, "{problems:?}");

    let mut problems = Vec::new();
    check_sentences(path, paragraph(&"word ".repeat(SENTENCE)), &mut problems);
    assert_eq!(problems, [""; 0]);
    check_sentences(path, paragraph(&"word ".repeat(SENTENCE + 1)), &mut problems);
    assert_eq!(problems.len(), 1);

    let mut collector = Collector::default();
    for (at, line) in ["# One", "two", "- three", "| cell |", "```", "code", "```", "four"].iter().enumerate()
    {
        collector.line(at + 1, line);
    }
    let found: Vec<(usize, String)> = collector.finish().into_iter().map(|p| (p.line, p.text)).collect();
    assert_eq!(found, [(1, "One".into()), (2, "two".into()), (3, "three".into()), (8, "four".into())]);
}
