//! Loops over the names of the history, without the evaluator.
//!
//! `history._list.all(name, name != 'delete')` asks the same of every name. Such a test of a text cannot fail, so it is
//! decided before the evaluation and its result is a variable.

use cel::IdedExpr;
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use serde_json::Value;

/// The variables begin with a character that no source can have in a name.
const PREFIX: char = '@';

/// Returns true for the variable of a loop over names.
pub(super) fn is_variable(name: &str) -> bool {
    name.starts_with("@names")
}

/// Returns the variable of the loop of this number.
pub(super) fn variable(number: usize) -> String {
    format!("{PREFIX}names{number}")
}

/// A loop over all names.
#[derive(Debug)]
pub(super) struct NameLoop {
    /// True for `all`, false for `exists`.
    all: bool,
    test: Test,
}

impl NameLoop {
    /// Returns the result over these names.
    pub(super) fn over<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        if self.all {
            names.all(|name| self.test.holds(name))
        } else {
            names.any(|name| self.test.holds(name))
        }
    }
}

/// A test of a name.
#[derive(Debug)]
enum Test {
    Always(bool),
    Is(String),
    Begins(String),
    Ends(String),
    Contains(String),
    Among(Vec<String>),
    Not(Box<Self>),
    Both(Box<Self>, Box<Self>),
    Either(Box<Self>, Box<Self>),
}

impl Test {
    fn holds(&self, name: &str) -> bool {
        match self {
            Self::Always(value) => *value,
            Self::Is(text) => name == text,
            Self::Begins(text) => name.starts_with(text.as_str()),
            Self::Ends(text) => name.ends_with(text.as_str()),
            Self::Contains(text) => name.contains(text.as_str()),
            Self::Among(texts) => texts.iter().any(|text| name == text),
            Self::Not(test) => !test.holds(name),
            Self::Both(one, other) => one.holds(name) && other.holds(name),
            Self::Either(one, other) => one.holds(name) || other.holds(name),
        }
    }
}

/// Takes the loops over names out of an expression over the Engagement object, and puts their variables in their places.
pub(super) fn take(expression: &mut IdedExpr) -> Vec<NameLoop> {
    let mut loops = Vec::new();
    visit(expression, &mut loops);
    loops
}

fn visit(node: &mut IdedExpr, loops: &mut Vec<NameLoop>) {
    match &mut node.expr {
        Expr::Comprehension(each) => match name_loop(each) {
            Some(found) => {
                node.expr = Expr::Ident(variable(loops.len()));
                loops.push(found);
            }
            None => {
                let parts = [
                    &mut each.iter_range,
                    &mut each.accu_init,
                    &mut each.loop_cond,
                    &mut each.loop_step,
                    &mut each.result,
                ];
                parts.into_iter().for_each(|part| visit(part, loops));
            }
        },
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| visit(target, loops));
            call.args.iter_mut().for_each(|argument| visit(argument, loops));
        }
        Expr::Select(select) => visit(&mut select.operand, loops),
        Expr::List(list) => list.elements.iter_mut().for_each(|item| visit(item, loops)),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| {
            if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                visit(&mut entry.key, loops);
                visit(&mut entry.value, loops);
            }
        }),
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) => {}
    }
}

fn name_loop(each: &ComprehensionExpr) -> Option<NameLoop> {
    let is_accu = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if *name == each.accu_var);
    let Expr::Call(step) = &each.loop_step.expr else { return None };
    let [accu, test] = step.args.as_slice() else { return None };
    if each.iter_var2.is_some() || !is_names(&each.iter_range) || !is_accu(accu) || !is_accu(&each.result) {
        return None;
    }
    let all = match step.func_name.as_str() {
        op::LOGICAL_AND => true,
        op::LOGICAL_OR => false,
        _ => return None,
    };
    Some(NameLoop { all, test: test_of(test, &each.iter_var)? })
}

/// Returns true for `history._list` and `history["_list"]`.
fn is_names(node: &IdedExpr) -> bool {
    let is_history = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == "history");
    match &node.expr {
        Expr::Select(select) => !select.test && select.field == "_list" && is_history(&select.operand),
        Expr::Call(call) => match (call.func_name.as_str(), call.args.as_slice()) {
            (op::INDEX, [of, key]) => is_history(of) && text(key) == Some("_list"),
            _ => false,
        },
        _ => false,
    }
}

fn test_of(node: &IdedExpr, name: &str) -> Option<Test> {
    let is_name = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(own) if own == name);
    match &node.expr {
        Expr::Literal(LiteralValue::Boolean(value)) => Some(Test::Always(*value.inner())),
        Expr::Call(call) => match &call.target {
            Some(target) => of_method(call, target, is_name),
            None => of_operator(call, name, is_name),
        },
        _ => None,
    }
}

fn of_method(call: &CallExpr, target: &IdedExpr, is_name: impl Fn(&IdedExpr) -> bool) -> Option<Test> {
    let [argument] = call.args.as_slice() else { return None };
    let text = text(argument).filter(|_| is_name(target))?.to_owned();
    match call.func_name.as_str() {
        "startsWith" => Some(Test::Begins(text)),
        "endsWith" => Some(Test::Ends(text)),
        "contains" => Some(Test::Contains(text)),
        _ => None,
    }
}

fn of_operator(call: &CallExpr, name: &str, is_name: impl Fn(&IdedExpr) -> bool) -> Option<Test> {
    let compared = |one: &IdedExpr, other: &IdedExpr| {
        let text = if is_name(one) { text(other) } else { text(one).filter(|_| is_name(other)) };
        Some(Test::Is(text?.to_owned()))
    };
    let both = |one, other| Some((Box::new(test_of(one, name)?), Box::new(test_of(other, name)?)));
    match (call.func_name.as_str(), call.args.as_slice()) {
        (op::EQUALS, [one, other]) => compared(one, other),
        (op::NOT_EQUALS, [one, other]) => Some(Test::Not(Box::new(compared(one, other)?))),
        (op::LOGICAL_NOT, [one]) => Some(Test::Not(Box::new(test_of(one, name)?))),
        (op::LOGICAL_AND, [one, other]) => both(one, other).map(|(one, other)| Test::Both(one, other)),
        (op::LOGICAL_OR, [one, other]) => both(one, other).map(|(one, other)| Test::Either(one, other)),
        (op::IN, [one, list]) if is_name(one) => match &list.expr {
            Expr::List(list) => {
                let texts = list.elements.iter().map(|item| text(item).map(str::to_owned));
                Some(Test::Among(texts.collect::<Option<_>>()?))
            }
            _ => None,
        },
        _ => None,
    }
}

fn text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Returns the names of a history.
pub(super) fn of(list: &[Value]) -> impl Iterator<Item = &str> {
    list.iter().filter_map(Value::as_str)
}
