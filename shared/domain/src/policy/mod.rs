//! Restrictions and `exposes`: CEL expressions over the Engagement object (OAS-33 … OAS-36, OAS-48).
//!
//! An expression sees `started_at`, `user`, `recent` and `history` and nothing else. Its source and the values that it
//! reads are untrusted. So its functions are known, and its size, its depth, its work, its input and its output bounded.
//! Every step runs on a thread with a stack that its recursion cannot exhaust.

pub mod backtest;
mod cost;
mod inexact;
mod kept;
pub mod lint;
mod names;
mod rewrite;
mod thread;
mod value;
mod vet;
pub(crate) mod view;

pub(crate) use kept::Kept;
pub use view::View;

use cel::common::types::CelBool;
use cel::{Context, Env, ExecutionError, IdedExpr, Program, Value as Cel};
use cost::Read;
use names::NameLoop;
use serde_json::Value;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use value::Bound;
use vet::{Scope, Vetted};

/// The longest expression, in bytes, before and after the rewrite of dotted names.
pub const MAX_SOURCE_BYTES: usize = 8192;

/// The four variables of an expression (OAS-33).
pub const VARIABLES: [&str; 4] = ["started_at", "user", "recent", "history"];

/// Why an expression could not be compiled or evaluated. No message shows a value of the Engagement object.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// The source is empty.
    #[error("the expression is empty; write a CEL expression such as `history._total < 10`")]
    Empty,
    /// The source is longer than [`MAX_SOURCE_BYTES`].
    #[error(
        "the expression has {bytes} bytes; at most {MAX_SOURCE_BYTES} are allowed, so split or shorten it"
    )]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The source is not CEL.
    #[error("not a CEL expression: {0}")]
    Syntax(String),
    /// It names a variable that an expression cannot see.
    #[error("unknown variable `{0}`; an expression sees `started_at`, `user`, `recent` and `history` only")]
    UnknownVariable(String),
    /// It calls a function that is not offered.
    #[error("unknown function `{0}`")]
    UnknownFunction(String),
    /// It could cost too much.
    #[error("the expression could cost too much: {0}")]
    TooComplex(&'static str),
    /// Its loops could take too many steps over what it reads.
    #[error(
        "the expression could take {steps} steps over what it reads; at most {} are allowed, so use fewer loops inside of one \
         another, or shorter lists",
        cost::MOST_STEPS
    )]
    TooCostly {
        /// The most steps.
        steps: u64,
    },
    /// The part of the Engagement object that it reads is too large or malformed.
    #[error("the Engagement object cannot be read: {0}")]
    Input(String),
    /// It failed: a missing key, a wrong type, a division by zero.
    #[error("the expression failed: {0}")]
    Evaluation(String),
    /// It did not end in time, or the evaluator is not available.
    #[error("the expression was given up: {0}")]
    GivenUp(&'static str),
}

/// Why an assertion does not hold: a sentence for the model, the caller and the log (OAS-36).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Denial(pub String);

/// A compiled expression over the Engagement object. Cloning shares it.
#[derive(Clone)]
pub struct Expression {
    inner: Arc<Inner>,
}

struct Inner {
    source: String,
    /// `None` only while it is being dropped.
    program: Option<Parsed>,
    vetted: Vetted,
}

/// A parsed expression.
#[derive(Clone)]
struct Parsed {
    /// As it was written.
    written: Arc<IdedExpr>,
    /// As it is evaluated: the results of its loops over names are variables.
    evaluated: Arc<IdedExpr>,
    /// These loops.
    names: Arc<[NameLoop]>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Dropping a tree recurses as deeply as it nests.
        if let Some(program) = self.program.take() {
            thread::forget_there(program);
        }
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.inner.source).finish()
    }
}

impl Expression {
    /// Compiles an expression. `names` are the capability names of the agent. A dotted form of them, as in the
    /// specification's examples (`recent.search-faqs.inputs`), becomes the form that CEL reads
    /// (`recent["search-faqs"].inputs`). The longest known name wins.
    ///
    /// # Errors
    /// [`PolicyError`] when the source is too long, not CEL, names an unknown variable or function, or loops too much.
    pub fn compile(source: &str, names: &[&str]) -> Result<Self, PolicyError> {
        let text =
            if source.len() > MAX_SOURCE_BYTES { None } else { Some(rewrite::addressable(source, names)) };
        Self::parsed(source, text, Scope::Engagement)
    }

    /// Compiles the assertion of a guardrail, which sees the output of the guardrail's tool and nothing else (OAS-45).
    ///
    /// # Errors
    /// As [`Expression::compile`]. The variables are known only when there is an output.
    pub fn compile_over_output(source: &str) -> Result<Self, PolicyError> {
        let text = (source.len() <= MAX_SOURCE_BYTES).then(|| source.to_owned());
        Self::parsed(source, text, Scope::Output)
    }

    fn parsed(source: &str, text: Option<String>, scope: Scope) -> Result<Self, PolicyError> {
        if source.trim().is_empty() {
            return Err(PolicyError::Empty);
        }
        let Some(text) = text.filter(|text| text.len() <= MAX_SOURCE_BYTES) else {
            return Err(PolicyError::TooLong { bytes: source.len().max(MAX_SOURCE_BYTES + 1) });
        };
        let same = text == source;
        let (program, vetted) = thread::run(move || parse(&text, same, scope))??;
        Ok(Self { inner: Arc::new(Inner { source: source.to_owned(), program: Some(program), vetted }) })
    }

    /// Returns the expression as it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// Returns whether an evaluation takes no longer than a moment. Any other one may wait for the policy thread, up to 5
    /// seconds.
    #[must_use]
    pub fn is_light(&self) -> bool {
        self.inner.vetted.is_light()
    }

    /// Evaluates over the Engagement object. Only the parts that the expression names are read, without a copy. So an
    /// expression about one tool does not fail because of another tool's long output.
    ///
    /// # Errors
    /// [`PolicyError::Input`] for an object that is too large. [`PolicyError::Evaluation`] for a failure such as a
    /// missing key. [`PolicyError::GivenUp`] when it did not end in time.
    pub fn evaluate(&self, engagement: &View<'_>) -> Result<Value, PolicyError> {
        let vetted = &self.inner.vetted;
        let (mut variables, read) = engagement.bind(&vetted.needs, vetted.looks_up)?;
        let loops = self.inner.program.iter().flat_map(|program| program.names.iter());
        for (number, each) in loops.enumerate() {
            let holds = engagement.holds_for_names(each);
            variables.push((names::variable(number), Box::new(CelBool::from(holds))));
        }
        self.over(variables, read)
    }

    /// Evaluates over the output of a guardrail's tool.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn evaluate_over_output(&self, output: &Value) -> Result<Value, PolicyError> {
        let (variables, read) = view::of_output(output)?;
        self.over(variables, read)
    }

    fn over(&self, variables: Vec<(String, Bound)>, read: Read) -> Result<Value, PolicyError> {
        let inner = &self.inner;
        if !inner.vetted.looks_up {
            inner.vetted.cost.check(read)?;
        }
        let Some(program) = inner.program.as_ref().map(|program| Arc::clone(&program.evaluated)) else {
            return Err(PolicyError::GivenUp("it has been dropped"));
        };
        if read.bytes <= SMALL && inner.vetted.is_light() {
            // It cannot take long and does not recurse deeply, so the thread need not be changed.
            let run = || execute(&program, variables, &inner.source);
            return catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                Err(PolicyError::GivenUp("the evaluator failed on it; simplify the expression"))
            });
        }
        let source = inner.source.clone();
        thread::run(move || execute(&program, variables, &source))?
    }

    /// Holds an assertion: only the boolean `true` passes (OAS-36).
    ///
    /// # Errors
    /// [`Denial`] for `false`, for any other value, and for every error.
    pub fn assert(&self, engagement: &View<'_>) -> Result<(), Denial> {
        self.holds(self.evaluate(engagement))
    }

    /// Holds the assertion of a guardrail (OAS-45).
    ///
    /// # Errors
    /// As [`Expression::assert`].
    pub fn assert_over_output(&self, output: &Value) -> Result<(), Denial> {
        self.holds(self.evaluate_over_output(output))
    }

    fn holds(&self, result: Result<Value, PolicyError>) -> Result<(), Denial> {
        let source = self.source();
        match result {
            Ok(Value::Bool(true)) => Ok(()),
            Ok(Value::Bool(false)) => Err(Denial(format!("the assertion `{source}` does not hold"))),
            Ok(other) => {
                let kind = value::kind(&other);
                Err(Denial(format!(
                    "the assertion `{source}` gave {kind} instead of true or false, so it does not hold"
                )))
            }
            Err(e) => Err(Denial(format!("the assertion `{source}` does not hold: {e}"))),
        }
    }
}

/// The most bytes that a light expression reads on the caller's own thread.
const SMALL: u64 = 256 * 1024;

fn execute(program: &IdedExpr, variables: Vec<(String, Bound)>, source: &str) -> Result<Value, PolicyError> {
    let mut context = Context::with_env(environment());
    for (name, value) in variables {
        context.add_variable_as_val(name, value);
    }
    let result = Cel::resolve(program, &context).map_err(|e| PolicyError::Evaluation(reason(&e, source)))?;
    value::to_json(&result)
}

/// Parses and vets; on the policy thread.
fn parse(text: &str, as_written: bool, scope: Scope) -> Result<(Parsed, Vetted), PolicyError> {
    let program = Program::compile(text).map_err(|errors| {
        let Some(first) = errors.errors.first() else {
            return PolicyError::Syntax("it cannot be parsed".to_owned());
        };
        // The parser's message continues with every token that it would have accepted.
        let reported = first.msg.split(" expecting {").next().unwrap_or_default();
        let mut message: String = reported.chars().take(200).collect();
        if as_written && first.pos.0 > 0 {
            message.push_str(&format!(" (line {}, column {} of the expression)", first.pos.0, first.pos.1));
        }
        if message.contains("has() macro") {
            message.push_str("; has() needs a field such as has(recent.x.inputs), or write \"x\" in recent");
        }
        PolicyError::Syntax(message)
    })?;
    let written = Arc::new(program.expression().clone());
    let vetted = vet::vet(&written, scope)?;
    let mut evaluated = IdedExpr::clone(&written);
    let names = if scope == Scope::Engagement { names::take(&mut evaluated) } else { Vec::new() };
    if names.is_empty() {
        let evaluated = Arc::clone(&written);
        return Ok((Parsed { written, evaluated, names: Arc::new([]) }, vetted));
    }
    let vetted = vet::vet(&evaluated, scope)?;
    Ok((Parsed { written, evaluated: Arc::new(evaluated), names: names.into() }, vetted))
}

fn environment() -> Arc<Env> {
    static STANDARD: OnceLock<Arc<Env>> = OnceLock::new();
    STANDARD.get_or_init(|| Arc::new(Env::stdlib())).clone()
}

/// Returns the error without the values, which may be withheld from the reader of the message (OAS-35).
fn reason(error: &ExecutionError, source: &str) -> String {
    match error {
        // A key that is not in the source was computed from values.
        ExecutionError::NoSuchKey(key) if !source.contains(key.as_str()) => "there is no such key".to_owned(),
        ExecutionError::NoSuchKey(key) => {
            format!("there is no `{key}` where it is looked up; test for it first, with `\"{key}\" in` that map or with has()")
        }
        ExecutionError::NoSuchOverload(overload) if overload.to_string().contains("null_type") => {
            "something is looked up in null: a call failed, or its output is not collected or was withheld; compare it with null \
             first"
                .to_owned()
        }
        ExecutionError::NoSuchOverload(overload) if overload.to_string().contains(inexact::NAME) => {
            "a number has more digits than CEL holds".to_owned()
        }
        ExecutionError::UndeclaredReference(name) => format!("`{name}` is not known, or not for this type"),
        ExecutionError::NoSuchOverload(overload) => overload.to_string(),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is out of range".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "an index is outside of its list".to_owned(),
        ExecutionError::UnexpectedType { got, want } => format!("a {want} is needed where there is a {got}"),
        ExecutionError::FunctionError { function, .. } => {
            format!("`{function}` cannot be applied to this value")
        }
        _ => "the types of its values do not fit".to_owned(),
    }
}

#[cfg(test)]
mod tests;
