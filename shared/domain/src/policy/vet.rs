//! The limits of a parsed expression, and the parts of the Engagement object that it needs.

use super::cost::Cost;
use super::{PolicyError, VARIABLES, names};
use crate::schema::patterns::{self, MOST_EXPRESSION_COST};
use cel::IdedExpr;
use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue};
use std::collections::{BTreeMap, BTreeSet};

/// The keys of a variable that an expression names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Keys {
    /// It uses the whole variable.
    All,
    /// It names these and no others.
    Some(BTreeSet<String>),
}

impl Keys {
    /// Returns true if this key is among them.
    pub(super) fn has(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(keys) => keys.contains(key),
        }
    }
}

/// Variables that an expression reads.
pub(super) type Needs = BTreeMap<&'static str, Keys>;

/// The object that an expression reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scope {
    /// The Engagement object.
    Engagement,
    /// The output of a guardrail's tool, whose keys are known only when it is there.
    Output,
}

/// The facts about an expression before it is evaluated.
#[derive(Debug)]
pub(super) struct Vetted {
    /// The parts of the Engagement object that it reads.
    pub(super) needs: Needs,
    /// True if it only looks values up and compares them: nothing in it is repeated or grows.
    pub(super) looks_up: bool,
    /// The work that it makes.
    pub(super) cost: Cost,
    /// How deep it nests.
    depth: usize,
    /// True if it searches with a pattern.
    matches: bool,
}

impl Vetted {
    /// Returns true if it takes little time and little stack, whatever it reads.
    pub(super) fn is_light(&self) -> bool {
        self.looks_up && !self.matches && self.depth <= LIGHT_DEPTH
    }
}

/// The evaluator recurses as deeply as an expression nests; this deep is safe on any thread, in a build for tests too.
const LIGHT_DEPTH: usize = 16;

/// The deepest nesting: evaluator and parser recurse as deeply.
const MAX_DEPTH: usize = 512;

const FUNCTIONS: [&str; 43] = [
    op::CONDITIONAL,
    op::LOGICAL_AND,
    op::LOGICAL_OR,
    op::LOGICAL_NOT,
    op::SUBSTRACT,
    op::ADD,
    op::MULTIPLY,
    op::DIVIDE,
    op::MODULO,
    op::EQUALS,
    op::NOT_EQUALS,
    op::GREATER_EQUALS,
    op::LESS_EQUALS,
    op::GREATER,
    op::LESS,
    op::NEGATE,
    op::INDEX,
    op::IN,
    op::NOT_STRICTLY_FALSE,
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bool",
    "timestamp",
    "duration",
    "getFullYear",
    "getMonth",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "has",
    "dyn",
];

/// Walks the whole tree.
pub(super) fn vet(expression: &IdedExpr, scope: Scope) -> Result<Vetted, PolicyError> {
    let mut walk = Walk {
        about: scope,
        needs: Needs::new(),
        cost: Cost::default(),
        scope: Vec::new(),
        depth: 0,
        deepest: 0,
        matches: false,
        patterns: 0,
    };
    walk.visit(expression)?;
    walk.cost.check_expected()?;
    let looks_up = walk.cost.is_flat();
    Ok(Vetted { needs: walk.needs, looks_up, cost: walk.cost, depth: walk.deepest, matches: walk.matches })
}

struct Walk {
    about: Scope,
    needs: Needs,
    cost: Cost,
    /// Variables of the loops around the present place, the innermost last; not empty means inside of a loop's body.
    scope: Vec<Vec<String>>,
    depth: usize,
    deepest: usize,
    matches: bool,
    /// The cost of compiling the patterns so far.
    patterns: u64,
}

impl Walk {
    fn visit(&mut self, node: &IdedExpr) -> Result<(), PolicyError> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.depth > MAX_DEPTH {
            return Err(PolicyError::TooComplex(
                "it nests deeper than 512 levels; a chain of operators nests, too",
            ));
        }
        self.cost.node(self.scope.len());
        let visited = self.look_at(node);
        self.depth -= 1;
        visited
    }

    fn look_at(&mut self, node: &IdedExpr) -> Result<(), PolicyError> {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(name, None),
            Expr::Select(select) => match &select.operand.expr {
                Expr::Ident(name) => self.variable(name, Some(&select.field)),
                _ => self.visit(&select.operand),
            },
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                self.cost.literal(list.elements.len());
                list.elements.iter().try_for_each(|item| self.visit(item))
            }
            Expr::Map(map) => {
                self.cost.literal(map.entries.len());
                map.entries.iter().try_for_each(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => {
                        self.visit(&entry.key).and_then(|()| self.visit(&entry.value))
                    }
                    EntryExpr::StructField(field) => self.visit(&field.value),
                })
            }
            Expr::Struct(made) => Err(PolicyError::UnknownFunction(format!("{}{{}}", made.type_name))),
            Expr::Comprehension(each) => self.comprehension(each),
        }
    }

    fn variable(&mut self, name: &str, key: Option<&str>) -> Result<(), PolicyError> {
        let is_own = self.scope.iter().flatten().any(|own| own == name) || names::is_variable(name);
        if is_own || self.about == Scope::Output {
            return Ok(());
        }
        let Some(known) = VARIABLES.into_iter().find(|known| *known == name) else {
            return Err(PolicyError::UnknownVariable(name.to_owned()));
        };
        let keys = self.needs.entry(known).or_insert_with(|| Keys::Some(BTreeSet::new()));
        match (keys, key) {
            (Keys::Some(keys), Some(key)) => {
                keys.insert(key.to_owned());
            }
            (keys, None) => *keys = Keys::All,
            (Keys::All, Some(_)) => {}
        }
        Ok(())
    }

    fn call(&mut self, call: &CallExpr) -> Result<(), PolicyError> {
        let name = call.func_name.as_str();
        if !FUNCTIONS.contains(&name) {
            return Err(PolicyError::UnknownFunction(name.to_owned()));
        }
        if name == "matches" {
            self.matches = true;
            self.pattern(call)?;
        }
        if name == op::ADD && !call.args.iter().any(is_number) {
            self.cost.growing();
        }
        if self.reads_whole(call) {
            self.cost.wide(self.scope.len());
        }
        if !self.scope.is_empty() {
            if name == "matches" {
                return Err(PolicyError::TooComplex(
                    "`matches` inside of a loop; use startsWith, endsWith or contains",
                ));
            }
            if name == op::ADD && !call.args.iter().any(is_number) {
                return Err(PolicyError::TooComplex(
                    "`+` inside of a loop needs a number on one side, as in int(x) + 1; texts and lists would pile up",
                ));
            }
        }
        // `recent["name"]` and `"name" in recent` need that key and nothing else.
        if call.target.is_none() {
            match (name, call.args.as_slice()) {
                (op::INDEX, [variable, key]) | (op::IN, [key, variable]) => {
                    if let (Expr::Ident(variable), Some(key)) = (&variable.expr, text(key)) {
                        return self.variable(variable, Some(key));
                    }
                }
                _ => {}
            }
        }
        call.target.iter().try_for_each(|target| self.visit(target))?;
        call.args.iter().try_for_each(|argument| self.visit(argument))
    }

    /// Returns true if a call may go through a whole variable, such as `name in history._list`.
    fn reads_whole(&self, call: &CallExpr) -> bool {
        let goes_through =
            [op::IN, op::EQUALS, op::NOT_EQUALS, "contains", "startsWith", "endsWith", "size", "string"];
        let is_outside = |name: &str| !self.scope.iter().flatten().any(|own| own == name);
        let reads = |node: &IdedExpr| node.references().variables().into_iter().any(is_outside);
        goes_through.contains(&call.func_name.as_str())
            && !self.scope.is_empty()
            && (call.args.iter().any(reads) || call.target.iter().any(|target| reads(target)))
    }

    /// Every evaluation compiles the patterns anew, so they are short to compile.
    fn pattern(&mut self, call: &CallExpr) -> Result<(), PolicyError> {
        let Some(pattern) = call.args.last().and_then(text) else {
            return Err(PolicyError::TooComplex(
                "the pattern of `matches` is computed; write it as a text between quotes",
            ));
        };
        // A pattern that cannot be read fails before it costs anything.
        let cost = patterns::cost(pattern, MOST_EXPRESSION_COST).unwrap_or_default();
        self.patterns = self.patterns.saturating_add(cost);
        if self.patterns > MOST_EXPRESSION_COST {
            return Err(PolicyError::TooComplex(
                "the patterns of `matches` are too large; use smaller repetitions",
            ));
        }
        Ok(())
    }

    fn comprehension(&mut self, each: &ComprehensionExpr) -> Result<(), PolicyError> {
        self.visit(&each.iter_range)?;
        self.visit(&each.accu_init)?;
        let own = [Some(&each.iter_var), each.iter_var2.as_ref(), Some(&each.accu_var)];
        let own: Vec<String> = own.into_iter().flatten().cloned().collect();
        let hidden = own.iter().find(|name| VARIABLES.contains(&name.as_str()));
        if let Some(hidden) = hidden.filter(|_| self.about == Scope::Engagement) {
            return Err(PolicyError::Syntax(format!(
                "a loop's variable cannot be called `{hidden}`; choose another name"
            )));
        }
        self.scope.push(own);
        let body = self.visit(&each.loop_cond).and_then(|()| self.step(&each.loop_step, &each.accu_var));
        let body = body.and_then(|()| self.visit(&each.result));
        self.scope.pop();
        body
    }

    /// The step of a loop. `map` and `filter` are `[condition ?] result + [item] [: result]`. The item may only be made
    /// from its source, so that a list never grows beyond the input.
    fn step(&mut self, step: &IdedExpr, result: &str) -> Result<(), PolicyError> {
        let Expr::Call(call) = &step.expr else { return self.visit(step) };
        let is_result = |node: &IdedExpr| matches!(&node.expr, Expr::Ident(name) if name == result);
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::ADD, [kept, added]) if is_result(kept) => match &added.expr {
                Expr::List(list) => list.elements.iter().try_for_each(|item| self.item(item)),
                _ => self.visit(added),
            },
            (op::CONDITIONAL, [condition, then, otherwise]) => {
                self.visit(condition)?;
                self.step(then, result)?;
                self.step(otherwise, result)
            }
            _ => self.visit(step),
        }
    }

    fn item(&mut self, item: &IdedExpr) -> Result<(), PolicyError> {
        if builds(&item.expr) {
            return Err(PolicyError::TooComplex("a list, a map or a loop inside of map"));
        }
        let innermost = self.scope.last().map_or(&[][..], Vec::as_slice);
        let outside = |name: &str| !innermost.iter().any(|own| own == name) && !names::is_variable(name);
        if item.references().variables().into_iter().any(outside) {
            return Err(PolicyError::TooComplex(
                "map may only use the item it is given, not everything that the expression sees",
            ));
        }
        self.visit(item)
    }
}

fn text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

/// Returns true if an expression can only be a number (or an error), so that adding to it cannot build up anything.
fn is_number(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Literal(literal) => {
            matches!(literal, LiteralValue::Int(_) | LiteralValue::UInt(_) | LiteralValue::Double(_))
        }
        Expr::Call(call) => {
            let arithmetic =
                [op::MULTIPLY, op::DIVIDE, op::MODULO, op::NEGATE, "size", "int", "uint", "double"];
            arithmetic.contains(&call.func_name.as_str())
                || call.func_name == op::ADD && call.args.iter().any(is_number)
        }
        _ => false,
    }
}

fn builds(expression: &Expr) -> bool {
    match expression {
        Expr::List(_) | Expr::Map(_) | Expr::Struct(_) | Expr::Comprehension(_) => true,
        Expr::Call(call) => {
            call.target.iter().any(|target| builds(&target.expr))
                || call.args.iter().any(|item| builds(&item.expr))
        }
        Expr::Select(select) => builds(&select.operand.expr),
        _ => false,
    }
}
