use super::*;
use crate::engagement::EngagementObject;
use serde_json::json;

const NAMES: [&str; 5] = ["search-faqs", "search", "a.b", "a", "book-flight"];

fn engagement() -> EngagementObject {
    object(json!({
        "started_at": "2026-03-01T10:00:00Z",
        "user": {"id": "u-17", "email": null},
        "recent": {
            "_name": "search-faqs",
            "search-faqs": {"inputs": {"path": "public/a"}, "outputs": {"pages": [1, 2]}},
            "search": {"inputs": {"q": "tides"}},
            "a.b": {"inputs": {"k": 3}},
            "book-flight": {"inputs": {"price": 640.5, "seats": 2}},
        },
        "history": {
            "_list": ["search", "search-faqs"],
            "_total": 2,
            "search-faqs": [{"inputs": {"path": "public/a"}, "outputs": {"pages": [1, 2]}}],
            "create-ticket": [],
        },
    }))
}

fn object(json: Value) -> EngagementObject {
    EngagementObject::from_json(&json).unwrap()
}

fn compiled(source: &str) -> Expression {
    Expression::compile(source, &NAMES).unwrap_or_else(|e| panic!("{source}: {e}"))
}

fn evaluated(source: &str) -> Result<Value, PolicyError> {
    compiled(source).evaluate(&engagement().view())
}

fn refused(source: &str) -> PolicyError {
    Expression::compile(source, &NAMES).expect_err(source)
}

#[test]
fn every_way_to_address_a_name() {
    for source in [
        r#"recent["search-faqs"].inputs["path"] == "public/a""#,
        r#"recent.search-faqs.inputs["path"].startsWith("public")"#,
        r#"recent["a.b"].inputs.k == 3"#,
        "recent.a.b.inputs.k + 1 == 4",
        "recent.search.inputs.q == 'tides'",
        "history.search-faqs.[0].inputs.path == 'public/a'",
        r#"history["search-faqs"][0].outputs.pages[1] == 2"#,
        r#""search-faqs" in recent && !("create-ticket" in recent)"#,
        r#"size(history["create-ticket"]) == 0"#,
        "has(recent.search.inputs)",
        "history._total - 1 == 1",
        "recent._name == history._list[history._total - 1]",
        "user.email == null && user.id == 'u-17'",
        "recent.book-flight.inputs.price <= 800 && recent.book-flight.inputs.seats * 2 == 4",
        "started_at < timestamp('2026-04-01T00:00:00Z')",
        "timestamp(started_at).getFullYear() == 2026",
        "history._list.exists(name, name == 'search') && size(history._list.filter(n, n != 'search')) == 1",
    ] {
        assert_eq!(evaluated(source), Ok(json!(true)), "{source}");
        assert_eq!(compiled(source).assert(&engagement().view()), Ok(()), "{source}");
    }
}

#[test]
fn without_the_name_a_dash_is_a_minus() {
    let expression = Expression::compile("recent.create-ticket.inputs == 1", &[]);
    assert_eq!(expression.unwrap_err(), PolicyError::UnknownVariable("ticket".to_owned()));
    assert!(matches!(refused("recent.`search-faqs`.inputs"), PolicyError::Syntax(_)));
    assert!(refused(r#"has(recent["search"])"#).to_string().contains("in recent"));
}

#[test]
fn any_value_but_true_denies() {
    for (source, because) in [
        ("false", "does not hold"),
        ("1", "a number instead of true or false"),
        ("'yes'", "a text instead"),
        ("[true]", "a list instead"),
        ("null", "null instead"),
        (r#"recent["missing"].k == 1"#, "there is no `missing`"),
        (r#"false || recent["missing"].k == 1"#, "there is no `missing`"),
        ("recent.search.inputs.q > 3", "overload"),
        ("1 / 0 == 1", "division by zero"),
        ("history._list[9] == ''", "outside of its list"),
    ] {
        let denial = compiled(source).assert(&engagement().view()).unwrap_err();
        assert!(denial.0.contains(because) && denial.0.contains(source), "{source}: {denial}");
    }
}

#[test]
fn an_error_beside_a_true_is_absorbed() {
    for source in ["1 == 1 || recent.missing.k == 1", r#"recent["missing"].k == 1 || true"#] {
        assert_eq!(compiled(source).assert(&engagement().view()), Ok(()), "{source}");
    }
}

#[test]
fn messages_do_not_show_what_an_expression_saw() {
    let secret = object(
        json!({"started_at": "2026-03-01T10:00:00Z", "user": {"id": "u"}, "recent": {"_name": "", "search": {"outputs": "hunter2"}}, "history": {"_list": []}}),
    );
    for source in [
        "recent.search.outputs > 3",
        "int(recent.search.outputs) == 1",
        "recent.search.outputs",
        "-recent.search.outputs == 1",
    ] {
        let denial = compiled(source).assert(&secret.view()).unwrap_err();
        assert!(!denial.0.contains("hunter2"), "{denial}");
    }
}

#[test]
fn only_the_four_variables_and_known_functions() {
    for name in ["now", "inputs", "outputs", "env", "ticket_id"] {
        assert_eq!(refused(&format!("{name} == 1")), PolicyError::UnknownVariable(name.to_owned()));
    }
    assert!(compiled("history._list.all(x, x != '')").assert(&engagement().view()).is_ok());
    assert_eq!(refused("history._list.all(x, y != '')"), PolicyError::UnknownVariable("y".to_owned()));
    assert_eq!(refused("history._list.all(x, x != '') && x"), PolicyError::UnknownVariable("x".to_owned()));
    assert_eq!(refused("exec('rm')"), PolicyError::UnknownFunction("exec".to_owned()));
    assert!(matches!(refused("[1].map(user, user)"), PolicyError::Syntax(_)));
    for broken in ["recent[", "1 +", "'open", "a b", "{"] {
        assert!(matches!(refused(broken), PolicyError::Syntax(_)), "{broken}");
    }
    assert_eq!(refused("  "), PolicyError::Empty);
}

#[test]
fn results_keep_their_types() {
    assert_eq!(evaluated("recent.search-faqs.outputs"), Ok(json!({"pages": [1, 2]})));
    assert_eq!(evaluated("started_at"), Ok(json!("2026-03-01T10:00:00.000Z")));
    assert_eq!(evaluated("duration('90s')"), Ok(json!("90s")));
    assert_eq!(evaluated("{'a': 1, 'b': [2.5, null]}"), Ok(json!({"a": 1, "b": [2.5, null]})));
    let big = json!({"id": u64::MAX, "n": i64::MAX});
    let over = |source: &str| Expression::compile_over_output(source).unwrap().evaluate_over_output(&big);
    assert_eq!(over("id"), Ok(json!(u64::MAX)));
    assert_eq!(over("output.n - 1"), Ok(json!(i64::MAX - 1)));
}

#[test]
fn hostile_sources_are_errors_and_nothing_worse() {
    let sum = |bytes: usize| format!("1{}", "+1".repeat(bytes / 2));
    assert!(matches!(refused(&sum(8192)), PolicyError::TooLong { bytes: 8193 }));
    assert!(matches!(refused(&sum(8190)), PolicyError::TooComplex(_)), "a chain nests");
    assert_eq!(compiled(&sum(1000)).evaluate(&engagement().view()), Ok(json!(501)));
    let nested =
        |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    for (source, times) in [("(", 500), ("[", 500), ("(", 20_000)] {
        let close = if source == "(" { ")" } else { "]" };
        assert!(Expression::compile(&nested(source, close, times), &[]).is_err(), "{source} {times}");
    }
    for source in ["!".repeat(1000) + "true", "-".repeat(1000) + "1", "a".repeat(1000), "((((".repeat(250)] {
        let _ = Expression::compile(&source, &[]);
    }
    let fields = format!("user{}", ".a".repeat(500));
    assert!(compiled(&fields).assert(&engagement().view()).is_err());
    // The length is measured again after the rewrite.
    let grown = vec!["recent.a.b"; 720].join("+");
    assert!(grown.len() <= MAX_SOURCE_BYTES && matches!(refused(&grown), PolicyError::TooLong { .. }));
}

#[test]
fn loops_do_no_more_work_than_allowed_and_do_not_grow() {
    let mut bomb = "[1, 1]".to_owned();
    for _ in 0..20 {
        bomb = format!("[{bomb}].map(z, z + z)[0]");
    }
    for source in [
        bomb.as_str(),
        "[user.id].map(x, x + x)",
        "[user.id].map(x, [x, x])",
        "[user.id].map(x, {'a': x})",
        "history._list.map(x, recent)",
        "history._list.map(x, x != '', recent)",
        "history._list.all(x, x.matches('(a+)+$'))",
    ] {
        assert!(matches!(refused(source), PolicyError::TooComplex(_)), "{source}");
    }
    let nested = |loops: usize| {
        let open: String = (0..loops).map(|n| format!("history._list.all(x{n}, ")).collect();
        format!("{open}x0 == ''{}", ")".repeat(loops))
    };
    assert!(matches!(refused(&nested(4)), PolicyError::TooCostly { .. }));
    assert_eq!(evaluated(&nested(2)), Ok(json!(false)));
    assert_eq!(evaluated("[1].map(x, x).map(x, x).map(x, x).map(x, x)"), Ok(json!([1])));
    assert_eq!(evaluated("[[1, 2], [3]].all(x, x.exists(y, y == 2 || y == 3))"), Ok(json!(true)));
    assert_eq!(evaluated("[1, 2].map(x, x + 1)"), Ok(json!([2, 3])));
    assert_eq!(evaluated("history._list.filter(x, x in ['search'])"), Ok(json!(["search"])));
    assert_eq!(evaluated("[1, 2, 2].exists_one(x, x == 1)"), Ok(json!(true)));
}

#[test]
fn input_is_bounded_by_what_the_expression_reads() {
    let mut large = engagement();
    for _ in 0..1001 {
        large.record("search", json!({}), json!("x".repeat(1100)));
    }
    large.record("book-flight", json!({}), json!("x".repeat(1100 * 1024)));
    for source in [
        "recent.search-faqs.inputs.path == 'public/a' && history._total == 1004",
        // An expression that only looks values up may read much.
        "recent.book-flight.outputs != '' && size(history.search) == 1001 && history._list[1003] == 'book-flight'",
        "'search' in history._list && history.search[1000].outputs.startsWith('xx')",
    ] {
        assert_eq!(compiled(source).assert(&large.view()), Ok(()), "{source}");
    }
    for source in [
        "recent.book-flight.outputs + 'y' == ''",
        "size(recent.filter(name, name != '')) == 1",
        "history.search.all(call, call.outputs != '')",
    ] {
        assert!(matches!(compiled(source).evaluate(&large.view()), Err(PolicyError::Input(_))), "{source}");
    }
    // Work over much is refused, however short the expression.
    let pairs = "history._list.all(one, history._list.exists(other, other == one))";
    assert!(matches!(compiled(pairs).evaluate(&large.view()), Err(PolicyError::TooCostly { .. })));
    // A value that is looked up may be large; a result may not.
    let given = compiled("recent.book-flight.outputs").evaluate(&large.view());
    assert!(matches!(given, Err(PolicyError::Input(_))));
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!([deep]);
    }
    let over = Expression::compile_over_output("output == 1").unwrap();
    assert!(matches!(over.evaluate_over_output(&deep), Err(PolicyError::Input(_))));
}

#[test]
fn a_list_that_is_kept_is_the_list_that_is_there() {
    let mut object = engagement();
    let about = |object: &EngagementObject, source: &str| compiled(source).evaluate(&object.view()).unwrap();
    for n in 1..4 {
        object.record("search", json!({"n": n}), Value::Null);
        assert_eq!(about(&object, "[size(history.search), history._total]"), json!([n, n + 2]));
        assert_eq!(about(&object, "history.search[size(history.search) - 1].inputs.n"), json!(n));
    }
    object.reveal("search", &json!("shown"));
    assert_eq!(about(&object, "history.search.map(call, call.outputs)"), json!([null, null, "shown"]));
    // A view of a call that is not part of the object yet leaves nothing behind.
    let (inputs, outputs) = (json!({"n": 9}), json!("new"));
    let view = object.with_made("search", &inputs, &outputs);
    let seen = compiled("[history._total, size(history.search), history.search[3].outputs, recent._name]");
    assert_eq!(seen.evaluate(&view), Ok(json!([6, 4, "new", "search"])));
    assert_eq!(view.to_json()["history"]["search"].as_array().unwrap().len(), 4);
    assert_eq!(view.to_json()["history"]["_total"], 6);
    assert_eq!(about(&object, "[history._total, size(history.search)]"), json!([5, 3]));
    object.record("search", json!({"n": 9}), Value::Null);
    assert_eq!(about(&object, "history.search[3].outputs"), Value::Null);
    assert_eq!(about(&object, "history"), object.to_json()["history"]);
    assert_eq!(about(&object, "history.search == history['search'] && [] != history.search"), json!(true));
    assert_eq!(about(&object, "size(history.search + history.search)"), json!(8));
}

/// OAS-45: a guardrail's assertion sees its tool's output and nothing else.
#[test]
fn over_an_output_only_the_output_is_there() {
    let holds = |source: &str, output: Value| {
        Expression::compile_over_output(source).unwrap().assert_over_output(&output)
    };
    assert_eq!(holds("safe && output.score < 3 && score < 3", json!({"safe": true, "score": 1})), Ok(()));
    assert_eq!(holds("output", json!(true)), Ok(()));
    assert_eq!(
        holds("output == 'fine' && words.all(w, w != 'bad')", json!({"output": "fine", "words": ["a"]})),
        Ok(())
    );
    assert_eq!(holds("[1, 2].map(x, x + 1) == [2, 3]", json!({})), Ok(()));
    for (source, output) in [
        ("user.id == 'u-17'", json!({"safe": true})),
        ("recent._name == ''", json!({})),
        ("history._total == 0", json!({})),
        ("started_at != null", json!({})),
        ("score", json!({"score": 1})),
        ("missing", json!("text")),
    ] {
        assert!(holds(source, output).is_err(), "{source}");
    }
    let compiled = |source: &str| Expression::compile_over_output(source);
    assert!(matches!(compiled("a b"), Err(PolicyError::Syntax(_))));
    assert!(matches!(compiled("[1].map(x, output)"), Err(PolicyError::TooComplex(_))));
    assert!(matches!(compiled(&"a".repeat(8193)), Err(PolicyError::TooLong { .. })));
}

/// OAS-33: a loop over the names of the history has the same result as the evaluator's, on any number of names.
#[test]
fn loops_over_names_are_those_of_the_evaluator() {
    let mut object = engagement();
    let tests = [
        "n != 'delete'",
        "!(n == 'search') && n in ['search', 'search-faqs', 'late']",
        "n.startsWith('sea') || n.endsWith('ht') || n.contains('x')",
        "'search' == n || false",
        "true",
    ];
    let same = |object: &EngagementObject| {
        for (test, each) in tests.iter().flat_map(|test| ["all", "exists"].map(|each| (test, each))) {
            let quick = format!("history._list.{each}(n, {test})");
            // The evaluator runs a loop over anything but the names themselves.
            let slow = format!("(history._list + []).{each}(n, {test})");
            let results = [&quick, &slow].map(|source| compiled(source).evaluate(&object.view()));
            assert_eq!(results[0], results[1], "{quick}");
        }
    };
    same(&object);
    for _ in 0..20 {
        object.record("late", json!({}), json!(1));
    }
    same(&object);
    for _ in 0..10_000 {
        object.record("search", json!({}), json!(1));
    }
    let long = "history._list.all(n, n != 'delete') && history['_list'].exists(n, n == 'late')";
    assert_eq!(compiled(long).evaluate(&object.view()), Ok(json!(true)));
    let (inputs, outputs) = (json!({}), json!(1));
    let made = compiled(long).evaluate(&object.with_made("delete", &inputs, &outputs));
    assert_eq!(made, Ok(json!(false)), "the call that was just made is one of the names");
}

#[test]
fn an_expression_is_shared_between_threads() {
    let expression = compiled("recent.search.inputs.q == 'tides'");
    let engagement = engagement();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let expression = expression.clone();
            let engagement = &engagement;
            scope.spawn(move || {
                (0..50).for_each(|_| assert_eq!(expression.assert(&engagement.view()), Ok(())))
            });
        }
    });
}
