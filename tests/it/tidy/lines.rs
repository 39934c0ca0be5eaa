//! Rust text in parts: code, string literals, and comments.

/// A source file without its comments and without the contents of its strings, and the strings by themselves.
pub struct Source {
    /// The code; comments and the contents of strings are blank, lines keep their numbers.
    pub code: String,
    /// The string literals, each with the line it begins on (1-based).
    pub literals: Vec<(usize, String)>,
}

/// Takes a Rust file apart.
pub fn take_apart(text: &str) -> Source {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0, line: 1, code: String::with_capacity(text.len()) };
    let mut literals = Vec::new();
    while let Some(now) = reader.peek(0) {
        match (now, reader.peek(1)) {
            ('/', Some('/')) => reader.blank_while(|rest| rest[0] != '\n'),
            ('/', Some('*')) => reader.block_comment(),
            ('"', _) => literals.push(reader.string()),
            ('\'', Some('\\')) => reader.character(),
            ('\'', Some(_)) if reader.peek(2) == Some('\'') => reader.character(),
            ('r', Some('"' | '#')) if !reader.follows_word() => literals.extend(reader.raw_string()),
            _ => reader.keep(),
        }
    }
    Source { code: reader.code, literals }
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    line: usize,
    code: String,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn follows_word(&self) -> bool {
        // `br"…"` is a literal too; any other letter before the `r` makes it the end of a word.
        let before = self.at.checked_sub(1).map(|at| self.chars[at]);
        before.is_some_and(|c| (c.is_alphanumeric() && c != 'b') || c == '_')
    }

    fn keep(&mut self) {
        let now = self.chars[self.at];
        self.line += usize::from(now == '\n');
        self.code.push(now);
        self.at += 1;
    }

    fn blank(&mut self) {
        let now = self.chars[self.at];
        self.line += usize::from(now == '\n');
        self.code.push(if now == '\n' { '\n' } else { ' ' });
        self.at += 1;
    }

    fn blank_while(&mut self, go_on: impl Fn(&[char]) -> bool) {
        while self.at < self.chars.len() && go_on(&self.chars[self.at..]) {
            self.blank();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn character(&mut self) {
        self.keep();
        if self.peek(0) == Some('\\') {
            self.blank();
        }
        self.blank();
        self.blank_while(|rest| rest[0] != '\'');
        if self.at < self.chars.len() {
            self.keep();
        }
    }

    fn string(&mut self) -> (usize, String) {
        let (line, start) = (self.line, self.at + 1);
        self.keep();
        while self.peek(0).is_some_and(|c| c != '"') {
            if self.peek(0) == Some('\\') && self.peek(1).is_some() {
                self.blank();
            }
            self.blank();
        }
        let text = self.chars[start..self.at].iter().collect();
        if self.at < self.chars.len() {
            self.keep();
        }
        (line, text)
    }

    fn raw_string(&mut self) -> Option<(usize, String)> {
        let hashes = self.chars[self.at + 1..].iter().take_while(|c| **c == '#').count();
        self.keep();
        if self.peek(hashes) != Some('"') {
            return None;
        }
        let line = self.line;
        (0..=hashes).for_each(|_| self.keep());
        let start = self.at;
        let ends =
            |rest: &[char]| rest[0] == '"' && rest[1..].iter().take_while(|c| **c == '#').count() >= hashes;
        self.blank_while(|rest| !ends(rest));
        let text = self.chars[start..self.at].iter().collect();
        for _ in self.at..self.chars.len().min(self.at + hashes + 1) {
            self.keep();
        }
        Some((line, text))
    }
}

#[test]
fn a_file_is_taken_apart() {
    let text = "let a = \"x // \\\" y\"; // say \"no\"\nlet b = r#\"raw \"q\"\n\"#; /* \"c\" /* d */ */ let c = '\"';\nfn f<'a>(r#type: &'a str) {}\n";
    let source = take_apart(text);
    let literals: Vec<(usize, &str)> =
        source.literals.iter().map(|(line, text)| (*line, text.as_str())).collect();
    assert_eq!(literals, [(1, "x // \\\" y"), (2, "raw \"q\"\n")]);
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert!(!source.code.contains("say") && !source.code.contains(" d "));
    assert!(source.code.contains("let c = '") && source.code.contains("fn f<'a>(r#type: &'a str) {}"));
}
