//! Makes each statement of `sql/` a constant of the crate, under the name of its file.
//!
//! `sql/common` has the statements with one text for both databases, which has placeholders. Where the databases
//! truly differ, a statement has a text in `sql/sqlite` and one in `sql/postgres`. The statements in
//! `sql/postgres_alone` are for PostgreSQL only.

#[path = "build/expand.rs"]
mod expand;
#[path = "build/files.rs"]
mod files;

use expand::{Dialect, columns, expand};
use files::{filled, parts_of_statements, sections, texts};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build.rs", "build", "sql"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut constants = Constants::default();
    let parts = parts_of_statements(&fs::read_to_string("sql/parts.txt")?)?;
    for (file, text) in statements("sql/common")? {
        let failed = |error: String| format!("sql/common/{file}.sql: {error}");
        for (name, text) in sections(&file, &text).map_err(failed)? {
            let text = filled(text, &parts);
            let texts = texts(&text).and_then(|texts| texts.iter().map(|text| Made::common(text)).collect());
            constants.add(&name, texts.map_err(failed)?)?;
        }
    }
    let mut of_postgres = statements("sql/postgres")?;
    for (name, sqlite) in statements("sql/sqlite")? {
        let postgres = of_postgres.remove(&name).ok_or_else(|| format!("sql/postgres has no {name}.sql"))?;
        let (sqlite, postgres) = (filled(sqlite, &parts), filled(postgres, &parts));
        constants.add(&name, vec![Made::apart(&sqlite, postgres)?])?;
    }
    if let Some(name) = of_postgres.keys().next() {
        return Err(format!("sql/sqlite has no {name}.sql").into());
    }
    for (name, text) in statements("sql/postgres_alone")? {
        let postgres = filled(text, &parts);
        constants.add(&name, vec![Made { postgres, ..Made::default() }])?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("statements.rs"), constants.written()?)?;
    Ok(())
}

/// One statement, for both databases.
#[derive(Default)]
struct Made {
    sqlite: String,
    /// The same for one row.
    sqlite_row: String,
    postgres: String,
    /// The columns of the rows that it is given.
    columns: Vec<String>,
}

impl Made {
    fn common(text: &str) -> Result<Self, String> {
        let columns = columns(text)?.into_iter().map(str::to_owned).collect();
        let (sqlite, sqlite_row) = (expand(text, Dialect::Sqlite)?, expand(text, Dialect::SqliteRow)?);
        Ok(Self { sqlite, sqlite_row, postgres: expand(text, Dialect::Postgres)?, columns })
    }

    /// With a text of its own for each database.
    fn apart(sqlite: &str, postgres: String) -> Result<Self, String> {
        Ok(Self { postgres, ..Self::common(sqlite)? })
    }
}

/// The SQL files of a folder by name, without their ending.
fn statements(folder: &str) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let name = path.file_stem().ok_or("a file has no name")?.to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(&path)?);
    }
    Ok(files)
}

/// Statements by name: usually one text each.
#[derive(Default)]
struct Constants(BTreeMap<String, Vec<Made>>);

impl Constants {
    fn add(&mut self, name: &str, texts: Vec<Made>) -> Result<(), String> {
        match self.0.insert(name.to_uppercase(), texts) {
            Some(_) => Err(format!("{name} is in two files of sql")),
            None => Ok(()),
        }
    }

    /// The source of the constants, and of a list of them.
    fn written(&self) -> Result<String, std::fmt::Error> {
        let (mut out, mut all) = (String::new(), String::new());
        for (name, texts) in &self.0 {
            let text = |Made { sqlite, sqlite_row, postgres, columns }: &Made| {
                format!(
                    "Text {{ sqlite: {sqlite:?}, sqlite_row: {sqlite_row:?}, postgres: {postgres:?}, columns: &{columns:?} }}"
                )
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
        writeln!(out, "/// Every statement by name: more than one text where a file expands to several.")?;
        writeln!(out, "pub(crate) static ALL: &[(&str, &[Text])] = &[\n{all}];")?;
        Ok(out)
    }
}
