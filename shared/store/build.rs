//! Makes each statement of `sql/` a constant of the crate, under the name of its file.
//!
//! `sql/common` has the statements with one text for both databases, which has placeholders. Where the databases
//! truly differ, a statement has a text in `sql/sqlite` and one in `sql/postgres`. The statements in
//! `sql/postgres_alone` are for PostgreSQL only.

#[path = "build/expand.rs"]
mod expand;

use expand::{Dialect, expand, texts};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build.rs", "build/expand.rs", "sql"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut constants = Constants::default();
    for (name, text) in files("sql/common")? {
        let expanded = |text: &String| -> Result<Texts, String> {
            let (sqlite, sqlite_row) = (expand(text, Dialect::Sqlite)?, expand(text, Dialect::SqliteRow)?);
            Ok(Texts { sqlite, sqlite_row, postgres: expand(text, Dialect::Postgres)? })
        };
        let texts = texts(&text).and_then(|texts| texts.iter().map(expanded).collect());
        constants.add(&name, texts.map_err(|error| format!("sql/common/{name}.sql: {error}"))?)?;
    }
    let mut of_postgres = files("sql/postgres")?;
    for (name, sqlite) in files("sql/sqlite")? {
        let postgres = of_postgres.remove(&name).ok_or_else(|| format!("sql/postgres has no {name}.sql"))?;
        let (sqlite, sqlite_row) = (expand(&sqlite, Dialect::Sqlite)?, expand(&sqlite, Dialect::SqliteRow)?);
        constants.add(
            &name,
            vec![Texts { sqlite, sqlite_row, postgres: expand(&postgres, Dialect::Postgres)? }],
        )?;
    }
    if let Some(name) = of_postgres.keys().next() {
        return Err(format!("sql/sqlite has no {name}.sql").into());
    }
    for (name, text) in files("sql/postgres_alone")? {
        constants.add(&name, vec![Texts { postgres: text, ..Texts::default() }])?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("statements.rs"), constants.written()?)?;
    Ok(())
}

/// The files of a folder by name, without their ending.
fn files(folder: &str) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_stem().ok_or("a file has no name")?.to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(&path)?);
    }
    Ok(files)
}

/// A statement in the words of each database.
#[derive(Default)]
struct Texts {
    sqlite: String,
    sqlite_row: String,
    postgres: String,
}

/// Statements by name: usually one text each.
#[derive(Default)]
struct Constants(BTreeMap<String, Vec<Texts>>);

impl Constants {
    fn add(&mut self, name: &str, texts: Vec<Texts>) -> Result<(), String> {
        match self.0.insert(name.to_uppercase(), texts) {
            Some(_) => Err(format!("{name}.sql stands in two folders of sql")),
            None => Ok(()),
        }
    }

    /// The source of the constants, and of a list of them for the tests.
    fn written(&self) -> Result<String, std::fmt::Error> {
        let (mut out, mut all) = (String::new(), String::new());
        for (name, texts) in &self.0 {
            let text = |Texts { sqlite, sqlite_row, postgres }: &Texts| {
                format!("Text {{ sqlite: {sqlite:?}, sqlite_row: {sqlite_row:?}, postgres: {postgres:?} }}")
            };
            match texts.as_slice() {
                [one] => {
                    writeln!(out, "pub(crate) static {name}: Text = {};", text(one))?;
                    writeln!(all, "    ({name:?}, std::slice::from_ref(&{name})),")?;
                }
                many => {
                    let texts = many.iter().map(text).collect::<Vec<_>>().join(", ");
                    writeln!(out, "pub(crate) static {name}: [Text; {}] = [{texts}];", many.len())?;
                    writeln!(all, "    ({name:?}, &{name}),")?;
                }
            }
        }
        writeln!(
            out,
            "/// Every statement by name: more than one text where a file stands for several.\n#[cfg(test)]"
        )?;
        writeln!(out, "pub(crate) static ALL: &[(&str, &[Text])] = &[\n{all}];")?;
        Ok(out)
    }
}
