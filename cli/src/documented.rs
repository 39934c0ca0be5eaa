//! Every command line of the pages and of `--help` is parsed by the program's own parser.

use crate::args::Cli;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser as _};
use std::path::{Path, PathBuf};

/// A command line of a page.
#[derive(PartialEq, Eq, Debug)]
struct Documented {
    place: String,
    words: Vec<String>,
    /// True in a code block. Inside of a sentence arguments may be left out.
    whole: bool,
}

/// Splits shell text into commands of words: at pipes, `;`, `&&` and `||`, without redirections and comments.
fn commands(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut letters = text.chars().peekable();
    let end = |words: &mut Vec<String>, word: &mut Option<String>| words.extend(word.take());
    while let Some(letter) = letters.next() {
        match letter {
            '\'' | '"' => {
                let quoted: String = letters.by_ref().take_while(|next| *next != letter).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            '\\' if letters.peek() == Some(&'\n') => drop(letters.next()),
            '#' if word.is_none() => {
                letters.by_ref().take_while(|next| *next != '\n').for_each(drop);
                end(&mut words, &mut word);
                all.push(std::mem::take(&mut words));
            }
            '\n' | '|' | ';' | '&' | '(' | ')' | '`' => {
                end(&mut words, &mut word);
                all.push(std::mem::take(&mut words));
            }
            '>' | '<' => {
                // The file behind it is no argument.
                end(&mut words, &mut word);
                while letters.peek().is_some_and(|next| [' ', '>', '&'].contains(next)) {
                    letters.next();
                }
                while letters.peek().is_some_and(|next| !next.is_whitespace() && *next != ';') {
                    letters.next();
                }
            }
            letter if letter.is_whitespace() => end(&mut words, &mut word),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    end(&mut words, &mut word);
    all.push(words);
    all.into_iter().filter(|words| !words.is_empty()).collect()
}

/// Returns the arguments of a command when it runs the program: `turnstone …`, `cargo run -- …`, with variables before it.
fn of_program(words: &[String]) -> Option<Vec<String>> {
    let is_assignment = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
    };
    let mut rest: Vec<&str> = words.iter().skip_while(is_assignment).map(String::as_str).collect();
    if rest.first() == Some(&"$") {
        rest.remove(0);
    }
    let arguments = match rest.as_slice() {
        ["cargo", "run", "--", arguments @ ..] => arguments,
        [program, arguments @ ..] if *program == "turnstone" || program.ends_with("/turnstone") => arguments,
        ["docker", "compose", "exec", _, "turnstone", arguments @ ..] => arguments,
        _ => return None,
    };
    Some(std::iter::once("turnstone").chain(arguments.iter().copied()).map(str::to_owned).collect())
}

/// Returns the command lines of a page: those of code blocks, and those in backticks.
fn of_page(name: &str, text: &str) -> Vec<Documented> {
    let (mut found, mut block, mut prose) = (Vec::new(), None::<(usize, String)>, String::new());
    let mut add = |place: String, text: &str, whole: bool| {
        let lines = commands(text).into_iter().filter_map(|words| of_program(&words));
        found.extend(lines.map(|words| Documented { place: place.clone(), words, whole }));
    };
    for (at, line) in text.lines().enumerate() {
        match (&mut block, line.trim_start().starts_with("```")) {
            (None, true) => block = Some((at + 1, String::new())),
            (Some((at, text)), true) => {
                add(format!("{name}:{at}"), text, true);
                block = None;
            }
            (Some((_, text)), false) => text.extend([line, "\n"]),
            (None, false) => prose.extend([line, "\n"]),
        }
    }
    for code in prose.split('`').skip(1).step_by(2).filter(|code| code.starts_with("turnstone ")) {
        add(format!("{name} `{code}`"), &code.replace('\n', " "), false);
    }
    found
}

/// Returns what is wrong with a command line, if anything is.
fn wrong(line: &Documented) -> Option<String> {
    let first = line.words.get(1).map_or("", String::as_str);
    // The name of the program, or a placeholder for any command.
    if first.is_empty() || (!line.whole && first.starts_with(['…', '-'])) {
        return None;
    }
    let is_elided = line.words.iter().any(|word| word.contains('…'));
    let error = Cli::try_parse_from(&line.words).err()?;
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => is_elided || !line.whole,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !line.whole,
        _ => false,
    };
    (!is_fine).then(|| format!("{}: {:?}: {error}", line.place, line.words))
}

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    let skipped = ["target", "adr", "node_modules"];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !skipped.contains(&name.as_str()) {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// Adds the examples below the help of a command and of all commands in it.
fn of_help(command: &Command, found: &mut Vec<Documented>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for line in help.lines() {
        let text = line.trim_start().trim_start_matches("Example: ").trim_start_matches("Examples: ");
        let text = if text.starts_with("turnstone ") || text.contains(" turnstone ") {
            // Remarks are at a distance.
            text.split("   ").next().unwrap_or_default()
        } else {
            continue;
        };
        let lines = commands(text).into_iter().filter_map(|words| of_program(&words));
        found.extend(lines.map(|words| Documented { place: format!("--help: {text}"), words, whole: true }));
    }
    command.get_subcommands().for_each(|command| of_help(command, found));
}

#[test]
fn every_documented_command_line_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut files, mut lines) = (Vec::new(), Vec::new());
    pages(root, &mut files);
    for file in files {
        let name = file.strip_prefix(root).unwrap().display().to_string();
        lines.extend(of_page(&name, &std::fs::read_to_string(&file).unwrap()));
    }
    let in_pages = lines.len();
    of_help(&Cli::command(), &mut lines);
    assert!(in_pages > 100 && lines.len() > in_pages + 20, "only {in_pages} and {} were found", lines.len());
    let wrong: Vec<String> = lines.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

#[test]
fn shell_text_is_split_into_commands() {
    let words = |text: &str| commands(text).iter().filter_map(|words| of_program(words)).collect::<Vec<_>>();
    assert_eq!(
        words("A=b turnstone job list -o ids | turnstone job cancel - > out.txt  # all\necho turnstone"),
        [vec!["turnstone", "job", "list", "-o", "ids"], vec!["turnstone", "job", "cancel", "-"]]
    );
    assert_eq!(
        words("cargo run -- job push --args '[\"a b\"]' \\\n  --set x=1"),
        [vec!["turnstone", "job", "push", "--args", "[\"a b\"]", "--set", "x=1"]]
    );
    let misspelt = |line: &str, whole: bool| {
        let words = line.split(' ').map(str::to_owned).collect();
        wrong(&Documented { place: String::new(), words, whole }).is_some()
    };
    assert!(misspelt("turnstone job lst", true) && misspelt("turnstone job list --tagg x", false));
    assert!(misspelt("turnstone job get", true) && !misspelt("turnstone job get", false));
}
