//! Warnings about an expression that compiles but can never hold, or cannot mean what it says (OAS-33, OAS-36, OAS-45).
//! They refuse no document; its author receives them.

use super::{Expression, VARIABLES, environment, execute, thread};
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use cel::{Context, IdedExpr, Program};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The subject of a warning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum About {
    /// A name that no capability of the document has.
    Name,
    /// A member that the Engagement object does not have.
    Member,
    /// The outputs of the call that is about to be made.
    Own,
    /// Outputs that are not collected.
    Dropped,
    /// A value that is neither true nor false.
    Type,
    /// The result is the same for every engagement, and not true.
    Never,
    /// A pattern that cannot be used.
    Pattern,
    /// The Engagement object, in an expression that cannot read it.
    Scope,
}

/// A sentence for the author of the document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// The subject.
    pub about: About,
    /// The problem, and the text to write instead.
    pub message: String,
}

/// The place of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExpressionPlace {
    /// In the input restriction of this capability.
    Input(String),
    /// In the output restriction of this capability.
    Output(String),
    /// Among what is exposed.
    Exposed,
    /// In a guardrail.
    Guardrail,
}

/// The document around an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Surroundings {
    /// The names of the capabilities.
    pub names: Vec<String>,
    /// Those whose results are not collected.
    pub dropped: Vec<String>,
    /// The place.
    pub place: ExpressionPlace,
}

impl Expression {
    /// Returns the warnings about a compiled expression, each once.
    #[must_use]
    pub fn doubts(&self, around: Surroundings) -> Vec<Doubt> {
        let Some(program) = self.inner.program.as_ref().map(|program| Arc::clone(&program.written)) else {
            return Vec::new();
        };
        let source = self.source().to_owned();
        // Walking a tree recurses as deeply as it nests.
        thread::run(move || doubts(&program, &source, &around)).unwrap_or_default()
    }
}

fn doubts(root: &IdedExpr, source: &str, around: &Surroundings) -> Vec<Doubt> {
    let mut walk = Walk { around, found: Vec::new(), loops: Vec::new(), reads: false, tests_outputs: false };
    walk.visit(root);
    let (reads, tests_outputs) = (walk.reads, walk.tests_outputs);
    let mut found = walk.found;
    found.retain(|doubt| doubt.about != About::Own || !tests_outputs);
    if around.place != ExpressionPlace::Exposed {
        found.extend(never(root, source, reads));
    }
    let mut seen = BTreeSet::new();
    found.retain(|doubt| seen.insert(doubt.message.clone()));
    found
}

/// Returns why it can never be true.
fn never(root: &IdedExpr, source: &str, reads: bool) -> Option<Doubt> {
    let of_type = |kind: &str| {
        let message = format!("it is {kind}, and only true lets anything pass; compare it with something");
        Doubt { about: About::Type, message }
    };
    let always =
        |what: &str| Doubt { about: About::Never, message: format!("it {what}, so nothing ever passes it") };
    if let Some(kind) = no_boolean(root) {
        return Some(of_type(kind));
    }
    if reads {
        return (constant(root) == Some(false)).then(|| always("is always false"));
    }
    match execute(root, Vec::new(), source) {
        Ok(Value::Bool(true)) => None,
        Ok(Value::Bool(false)) => Some(always("is always false")),
        Ok(_) => Some(of_type("neither true nor false")),
        Err(error) => Some(always(&format!("always fails: {error}"))),
    }
}

struct Walk<'a> {
    around: &'a Surroundings,
    found: Vec<Doubt>,
    /// Variables of the loops around the present place.
    loops: Vec<String>,
    /// True if it reads anything at all.
    reads: bool,
    /// True if it tests for outputs before it reads them.
    tests_outputs: bool,
}

impl Walk<'_> {
    fn visit(&mut self, node: &IdedExpr) {
        let mut keys = Vec::new();
        if let Some(path) = path(node, &mut keys) {
            let is_test = matches!(&node.expr, Expr::Select(select) if select.test);
            self.look_up(&path, is_test);
            keys.into_iter().for_each(|key| self.visit(key));
            return;
        }
        match &node.expr {
            Expr::Select(select) => self.visit(&select.operand),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => list.elements.iter().for_each(|item| self.visit(item)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.visit(&entry.key);
                    self.visit(&entry.value);
                }
                EntryExpr::StructField(field) => self.visit(&field.value),
            }),
            Expr::Comprehension(each) => {
                self.visit(&each.iter_range);
                self.visit(&each.accu_init);
                let own = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
                let outer = self.loops.len();
                self.loops.extend(own.into_iter().flatten().cloned());
                for part in [&each.loop_cond, &each.loop_step, &each.result] {
                    self.visit(part);
                }
                self.loops.truncate(outer);
            }
            Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => {}
        }
    }

    fn call(&mut self, call: &CallExpr) {
        let name = call.func_name.as_str();
        if let (op::IN, [key, of]) = (name, call.args.as_slice())
            && let (Some(key), Some(mut path)) = (text(key), path(of, &mut Vec::new()))
        {
            path.push(Some(key));
            self.look_up(&path, true);
            return;
        }
        if name == "matches"
            && let Some(pattern) = call.args.last().and_then(text)
            && !is_pattern(pattern)
        {
            self.doubt(
                About::Pattern,
                format!("`{pattern}` is no regular expression, so `matches` always fails"),
            );
        }
        call.target.iter().for_each(|target| self.visit(target));
        call.args.iter().for_each(|argument| self.visit(argument));
    }

    fn doubt(&mut self, about: About, message: String) {
        self.found.push(Doubt { about, message });
    }

    /// Checks a variable and the keys below it; `None` is a computed key. `is_test` is true when the expression only
    /// tests that it exists.
    fn look_up(&mut self, path: &[Option<&str>], is_test: bool) {
        let [Some(root), rest @ ..] = path else { return };
        if self.loops.iter().any(|own| own == root) {
            return;
        }
        self.reads = true;
        if self.around.place == ExpressionPlace::Guardrail {
            let is_users = *root == "user" && matches!(rest, [Some("id" | "email"), ..]);
            if VARIABLES.contains(root) && (*root != "user" || is_users) {
                let message = format!(
                    "`{root}` is of the Engagement object; a guardrail sees the output of its tool alone, as `output` and by its keys"
                );
                self.doubt(About::Scope, message);
            }
            return;
        }
        match (*root, rest) {
            ("recent", [Some("_name"), ..]) | ("history", [Some("_list" | "_total"), ..]) => {}
            ("recent", [Some(name), rest @ ..]) if self.is_name(name) => {
                self.member(name, rest);
                self.own(name, rest, is_test);
            }
            ("history", [Some(name), rest @ ..]) => match rest {
                _ if !self.is_name(name) => {}
                [Some(member), ..] => {
                    let message = format!(
                        "history has a list of calls of `{name}`, without a member `{member}`; write history[\"{name}\"][0].inputs"
                    );
                    self.doubt(About::Member, message);
                }
                [None, rest @ ..] => self.member(name, rest),
                [] => {}
            },
            ("user", [Some(member), ..]) if !matches!(*member, "id" | "email") => {
                let message = format!("a user has `id` and `email`, and no `{member}`");
                self.doubt(About::Member, message);
            }
            _ => {}
        }
    }

    fn is_name(&mut self, name: &str) -> bool {
        let known = self.around.names.iter().any(|own| own == name);
        if !known {
            let names = self.around.names.iter().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ");
            let own = if names.is_empty() { "has none".to_owned() } else { format!("has {names}") };
            self.doubt(About::Name, format!("`{name}` is no capability of this document, which {own}"));
        }
        known
    }

    /// Checks the member of a call.
    fn member(&mut self, name: &str, rest: &[Option<&str>]) {
        match rest {
            [Some("inputs"), ..] | [None, ..] | [] => {}
            [Some("outputs"), ..] => self.outputs(name),
            [Some(other), ..] => {
                let message = format!("a call has `inputs` and `outputs`, and no `{other}`");
                self.doubt(About::Member, message);
            }
        }
    }

    fn outputs(&mut self, name: &str) {
        let own_output = matches!(&self.around.place, ExpressionPlace::Output(own) if own == name);
        if self.around.dropped.iter().any(|dropped| dropped == name) && !own_output {
            let message = format!(
                "the outputs of `{name}` are not there, because of its `collect_results: false`; only its own output restriction sees them"
            );
            self.doubt(About::Dropped, message);
        }
    }

    /// Checks the outputs of the call that is about to be made; `history` never contains it.
    fn own(&mut self, name: &str, rest: &[Option<&str>], is_test: bool) {
        if !matches!(rest, [Some("outputs"), ..]) {
            return;
        }
        if is_test {
            self.tests_outputs = true;
        } else if matches!(&self.around.place, ExpressionPlace::Input(own) if own == name) {
            let message = format!(
                "before the call of `{name}` there are no outputs of it, so the first call is always refused; test for them with \
                 has(), or move this to `output_restriction`"
            );
            self.doubt(About::Own, message);
        }
    }
}

/// Returns the variable at the root and the keys below it; keys that are computed are put into `keys`.
fn path<'a>(node: &'a IdedExpr, keys: &mut Vec<&'a IdedExpr>) -> Option<Vec<Option<&'a str>>> {
    match &node.expr {
        Expr::Ident(name) => Some(vec![Some(name.as_str())]),
        Expr::Select(select) => {
            let mut path = path(&select.operand, keys)?;
            path.push(Some(&select.field));
            Some(path)
        }
        Expr::Call(call) if call.func_name == op::INDEX && call.target.is_none() => {
            let [of, key] = call.args.as_slice() else { return None };
            let mut path = path(of, keys)?;
            let known = text(key);
            if known.is_none() {
                keys.push(key);
            }
            path.push(known);
            Some(path)
        }
        _ => None,
    }
}

fn text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Returns true if the evaluator accepts this pattern.
fn is_pattern(pattern: &str) -> bool {
    let Ok(quoted) = serde_json::to_string(pattern) else { return true };
    let Ok(program) = Program::compile(&format!("\"\".matches({quoted})")) else { return true };
    program.execute(&Context::with_env(environment())).is_ok()
}

/// Returns the type of an expression, when it is known and not boolean.
fn no_boolean(node: &IdedExpr) -> Option<&'static str> {
    match &node.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(_) => None,
            LiteralValue::String(_) => Some("a text"),
            LiteralValue::Bytes(_) => Some("bytes"),
            LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_) => Some("a number"),
            LiteralValue::Null => Some("null"),
        },
        Expr::List(_) => Some("a list"),
        Expr::Map(_) => Some("a map"),
        Expr::Select(select) if select.test => None,
        Expr::Ident(_) | Expr::Select(_) => path(node, &mut Vec::new()).and_then(|path| of_path(&path)),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (op::INDEX, _) => path(node, &mut Vec::new()).and_then(|path| of_path(&path)),
            (op::CONDITIONAL, [_, then, otherwise]) => {
                no_boolean(then).filter(|_| no_boolean(otherwise).is_some())
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO | op::NEGATE, _) => {
                Some("what was calculated")
            }
            ("size" | "int" | "uint" | "double", _) => Some("a number"),
            ("string", _) => Some("a text"),
            ("timestamp" | "duration", _) => Some("a time"),
            (name, _) if name.starts_with("get") => Some("a number"),
            _ => None,
        },
        Expr::Comprehension(each) => {
            let is_made = matches!(&each.result.expr, Expr::Ident(name) if *name == each.accu_var);
            let is_list = matches!(&each.accu_init.expr, Expr::List(_));
            (is_made && is_list).then_some("a list")
        }
        Expr::Struct(_) | Expr::Unspecified => None,
    }
}

/// Returns the type at a path of the Engagement object, when it is known.
fn of_path(path: &[Option<&str>]) -> Option<&'static str> {
    match path {
        [Some("started_at")] => Some("a time"),
        [Some("recent" | "history" | "user")] | [Some("recent"), _, Some("inputs")] => Some("a map"),
        [Some("recent"), Some("_name")] | [Some("user"), Some("id")] => Some("a text"),
        [Some("history"), Some("_total")] => Some("a number"),
        [Some("history"), Some(_)] => Some("a list"),
        [Some("recent"), Some(_)] => Some("a map"),
        _ => None,
    }
}

/// Returns the constant result of an expression that is the same whatever it reads.
fn constant(node: &IdedExpr) -> Option<bool> {
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some(*value.inner()),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_NOT, [one]) => constant(one).map(|value| !value),
            (op::LOGICAL_AND, sides) if sides.iter().any(|side| constant(side) == Some(false)) => Some(false),
            (op::LOGICAL_OR, sides) if sides.iter().any(|side| constant(side) == Some(true)) => Some(true),
            (op::LOGICAL_AND | op::LOGICAL_OR, [one, other]) => {
                constant(one).zip(constant(other)).map(|(one, _)| one)
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, place: ExpressionPlace) -> Vec<About> {
        let names = ["book", "search-faqs", "quiet"];
        let expression = match place {
            ExpressionPlace::Guardrail => Expression::compile_over_output(source).unwrap(),
            _ => Expression::compile(source, &names).unwrap(),
        };
        let names = names.map(str::to_owned).to_vec();
        let doubts = expression.doubts(Surroundings { names, dropped: vec!["quiet".to_owned()], place });
        doubts.into_iter().map(|doubt| doubt.about).collect()
    }

    fn of_input(source: &str) -> Vec<About> {
        found(source, ExpressionPlace::Input("book".to_owned()))
    }

    /// OAS-33, OAS-36: an expression that can never hold is reported.
    #[test]
    fn assertions_that_can_never_hold_are_doubted() {
        for (source, about) in [
            (r#"recent["serch-faqs"].outputs.n > 1"#, About::Name),
            (r#"size(history["serch"]) == 0"#, About::Name),
            (r#""serch" in recent"#, About::Name),
            (r#"recent["book"].input.price < 3"#, About::Member),
            (r#"history["book"].inputs.price < 3"#, About::Member),
            (r#"history["book"][0].input.price < 3"#, About::Member),
            ("user.name == 'ann'", About::Member),
            (r#"recent["book"].outputs.n > 1"#, About::Own),
            (r#"recent["quiet"].outputs.n > 1"#, About::Dropped),
            ("'str'", About::Type),
            ("1 + 1", About::Type),
            ("history._total", About::Type),
            ("recent.book.inputs", About::Type),
            ("user.id == 'a' ? 'x' : 'y'", About::Type),
            ("history._list.map(name, name)", About::Type),
            ("false", About::Never),
            ("1 == 2", About::Never),
            ("user.id == 'ann' && false", About::Never),
            ("user.id.matches('[')", About::Pattern),
            ("matches(user.id, '(')", About::Pattern),
        ] {
            assert_eq!(of_input(source), [about], "{source}");
        }
    }

    #[test]
    fn assertions_that_may_hold_are_not_doubted() {
        for source in [
            r#"recent["book"].inputs.price <= 800"#,
            r#"recent.search-faqs.outputs.n > 1"#,
            r#"history["book"].all(call, call.inputs.price < 3)"#,
            r#"history["book"][size(history["book"]) - 1].outputs.ok"#,
            r#"has(recent.book.outputs) && recent.book.outputs.n > 1"#,
            r#""outputs" in recent["book"] && recent["book"].outputs.ok"#,
            "history._list.exists(name, name == 'book')",
            "history._total < 10 && user.email.endsWith('@example.org')",
            "started_at < timestamp('2030-01-01T00:00:00Z')",
            "recent._name == '' || recent._name.matches('^[a-z]+$')",
            "recent.search-faqs.outputs",
            "true",
            "user.id == 'a' ? true : false",
        ] {
            assert_eq!(of_input(source), [], "{source}");
        }
        assert_eq!(
            found(r#"recent["quiet"].outputs.n > 1"#, ExpressionPlace::Output("quiet".to_owned())),
            []
        );
        assert_eq!(
            found("recent.book.inputs", ExpressionPlace::Exposed),
            [],
            "what is exposed may be anything"
        );
    }

    /// OAS-45: a guardrail sees no Engagement object.
    #[test]
    fn a_guardrail_that_names_the_engagement_is_doubted() {
        for source in ["recent.book.outputs.ok", "history._total < 3", "user.id == 'ann'"] {
            assert_eq!(found(source, ExpressionPlace::Guardrail), [About::Scope], "{source}");
        }
        for source in ["!flagged", "output.score < 0.2", "user.score < 1", "categories.all(c, c != 'x')"] {
            assert_eq!(found(source, ExpressionPlace::Guardrail), [], "{source}");
        }
        assert_eq!(found("'yes'", ExpressionPlace::Guardrail), [About::Type]);
    }
}
