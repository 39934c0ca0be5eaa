//! Flows: control edges, data edges, and the nodes that hold flows.

use super::{FLOW, errors, rules, run_errors, warnings, with};

fn flow(old: &str, new: &str) -> Vec<String> {
    errors(&with(FLOW, old, new))
}

/// AS-30, AS-31, AS-32, AS-33: a flow has one start, an end, and edges between its nodes.
#[test]
fn control_edges_lead_from_the_start_to_an_end() {
    assert_eq!(flow("nodes: [{$component_ref: start}, ", "nodes: [")[0], "AS-30@4:13");
    let ask = flow("start_node: {$component_ref: start}", "start_node: {$component_ref: ask}");
    assert_eq!(ask[..2], ["AS-30@4:13", "AS-30@5:8"]);
    let second = "nodes: [{component_type: StartNode, id: s2, name: s2}, ";
    assert_eq!(flow("nodes: [", second), ["AS-30@5:8"]);
    assert_eq!(warnings(&with(FLOW, "nodes: [", "nodes: [{$component_ref: end}, ")), ["AS-30@5:8"]);
    let no_end =
        with(FLOW, "end: {component_type: EndNode", "end: {component_type: OutputMessageNode, message: ok");
    assert_eq!(rules(&with(&no_end, ", outputs: [{title: answer, type: string}]", ""))[0], "AS-31");
    let edge = |from: &str, to: &str| {
        format!(
            "control_flow_connections:\n- {{component_type: ControlFlowEdge, id: c3, name: c3, from_node: {{$component_ref: {from}}}, to_node: {{$component_ref: {to}}}}}"
        )
    };
    let old = "control_flow_connections:";
    assert_eq!(flow(old, &edge("end", "ask"))[0], "AS-32@7:66");
    assert!(flow(old, &edge("ask", "start")).contains(&"AS-32@7:98".to_owned()));
    assert_eq!(flow(old, &edge("start", "end")), ["AS-32@8:3"]);
    let outside =
        "to_node: {component_type: EndNode, id: e2, name: e2}}\n- {component_type: ControlFlowEdge, id: c2";
    assert!(
        flow("to_node: {$component_ref: ask}}\n- {component_type: ControlFlowEdge, id: c2", outside)
            .contains(&"AS-32@7:100".to_owned())
    );
    assert_eq!(
        flow(
            "id: c1, name: c1, from_node: {$component_ref: start}",
            "id: c1, name: c1, from_node: {$component_ref: ask}"
        )[0],
        "AS-32@1:1"
    );
}

/// AS-32, AS-33, AS-36: what a run cannot have refuses a document that is to be run, and is a warning of a check.
#[test]
fn what_no_run_can_have_is_refused_where_it_would_be_run() {
    for (old, new, place) in [
        ("id: c2, name: c2,", "id: c2, name: c2, from_branch: done,", "AS-32@8:68"),
        (
            "id: c2, name: c2, from_node: {$component_ref: ask}",
            "id: c2, name: c2, from_node: {$component_ref: start}",
            "AS-32@8:3",
        ),
        (
            "nodes: [",
            "nodes: [{component_type: OutputMessageNode, id: o, name: o, message: hi}, ",
            "AS-33@5:9",
        ),
        ("source_output: city", "source_output: city, x: ", "AS-07@10:1"),
        (
            "- {component_type: DataFlowEdge, id: d1, name: d1, source_node: {$component_ref: start}, source_output: city, destination_node: {$component_ref: ask}, destination_input: city}\n",
            "",
            "AS-36@14:5",
        ),
    ] {
        let source = with(FLOW, old, new);
        let (found, run) = (rules(&source), run_errors(&source));
        if place.starts_with("AS-07") {
            assert_eq!(run, [""; 0]);
            continue;
        }
        if old.contains("c2, from_node") {
            // The start is checked always: exactly one edge leaves it.
            assert_eq!(found, ["AS-32"], "{source}");
            continue;
        }
        assert_eq!(found, [""; 0], "{source}");
        assert!(run.contains(&place.to_owned()), "{run:?}");
        assert!(warnings(&source).contains(&place.to_owned()));
    }
}

/// AS-34, AS-35: a data edge connects what is there and fits.
#[test]
fn data_edges_connect_outputs_and_inputs_that_fit() {
    assert_eq!(flow("source_output: city", "source_output: town"), ["AS-34@10:105"]);
    assert_eq!(flow("destination_input: answer", "destination_input: anwser"), ["AS-34@11:179"]);
    let outside =
        "source_node: {component_type: StartNode, id: s2, name: s2, inputs: [{title: city, type: string}]}";
    assert_eq!(flow("source_node: {$component_ref: start}", outside), ["AS-34@10:65"]);
    assert_eq!(flow("{title: answer, type: string}", "{title: answer, type: integer}"), ["AS-35@11:3"]);
    assert_eq!(
        flow("inputs: [{title: city, type: string}]", "inputs: [{title: city, type: integer}]"),
        [""; 0]
    );
}

/// AS-36: an input is filled on every path, by edges or by names; a default fills it too.
#[test]
fn an_input_is_filled_on_every_path() {
    let edges = FLOW.split("data_flow_connections:").next().unwrap();
    let rest = FLOW.split("$referenced_components:").nth(1).unwrap();
    let by_name = format!("{edges}$referenced_components:{rest}");
    assert_eq!(run_errors(&by_name), ["AS-36@17:8"]);
    let named = with(&by_name, "title: answer", "title: generated_text");
    assert_eq!(run_errors(&named), [""; 0]);
    let empty = format!("{edges}data_flow_connections: []\n$referenced_components:{rest}");
    assert_eq!(run_errors(&empty), ["AS-36@13:5", "AS-36@18:8"]);
    let with_defaults =
        with(&empty, "title: answer, type: string", "title: answer, type: string, default: x");
    let narrowed = "id: ask\n    inputs: [{title: city, type: string, default: Rome}]";
    assert_eq!(run_errors(&with(&with_defaults, "id: ask", narrowed)), [""; 0]);
    // A loop that fills its own input does so too late for the first time.
    let branch = "component_type: Flow
id: f
name: f
agentspec_version: 25.4.1
start_node: {component_type: StartNode, id: s, name: s, inputs: [{title: key, type: string}]}
nodes:
- {$component_ref: s2}
- {component_type: BranchingNode, id: b, name: b, mapping: {x: left}, inputs: [{title: key, type: string}]}
- {component_type: InputMessageNode, id: i, name: i, outputs: [{title: said, type: string}]}
- {component_type: EndNode, id: e, name: e, outputs: [{title: said, type: string}]}
$referenced_components: {s2: {$component_ref: s3}}
control_flow_connections: []
";
    assert_eq!(rules(branch)[0], "AS-11");
}

/// AS-37: an output of a flow comes from every end, or has a default.
#[test]
fn outputs_of_a_flow_come_from_its_ends() {
    let declared = |outputs: &str| format!("{FLOW}outputs: {outputs}\n");
    assert_eq!(errors(&declared("[{title: answer, type: string}]")), [""; 0]);
    assert_eq!(errors(&declared("[]")), [""; 0]);
    assert_eq!(errors(&declared("[{title: more, type: string}]")), ["AS-37@22:10"]);
    assert_eq!(errors(&declared("[{title: more, type: string, default: none}]")), [""; 0]);
    assert_eq!(errors(&declared("[{title: answer, type: integer}]")), ["AS-37@22:10"]);
    let inputs = format!("{FLOW}inputs: []\n");
    assert_eq!(errors(&inputs), ["AS-23@22:9"]);
    let second = with(
        FLOW,
        "nodes: [",
        "nodes: [{component_type: EndNode, id: e2, name: e2, outputs: [{title: answer, type: integer}]}, ",
    );
    assert_eq!(errors(&second), ["AS-37@20:63"]);
}

/// AS-39, AS-40, AS-44: nodes have the branches, inputs and outputs of their kind.
#[test]
fn nodes_have_the_signature_of_their_kind() {
    let node = |fields: &str| format!("id: n\nname: n\nagentspec_version: 26.3.1\n{fields}\n");
    assert_eq!(flow("id: ask\n", "id: ask\n    branches: [next]\n"), [""; 0]);
    assert_eq!(flow("id: ask\n", "id: ask\n    branches: [then]\n"), ["AS-39@17:15"]);
    let branching = "component_type: BranchingNode\nmapping: {a: one, b: one, c: two}\n";
    assert_eq!(rules(&node(branching)), [""; 0]);
    assert_eq!(rules(&node(&format!("{branching}branches: [two, default, one]"))), [""; 0]);
    assert_eq!(errors(&node(&format!("{branching}branches: [one, two]"))), ["AS-39@6:11"]);
    assert_eq!(errors(&node(&format!("{branching}inputs: [{{title: a}}, {{title: b}}]"))), ["AS-40@6:9"]);
    assert_eq!(errors(&node(&format!("{branching}outputs: [{{title: a}}]"))), ["AS-23@6:10"]);
    let ask = "component_type: InputMessageNode\nmessage: '{{greeting}}, who are you?'\n";
    assert_eq!(rules(&node(ask)), [""; 0]);
    assert_eq!(errors(&node(&format!("{ask}outputs: [{{title: n, type: integer}}]"))), ["AS-44@6:10"]);
    assert_eq!(
        errors(&node("component_type: StartNode\ninputs: [{title: a}]\noutputs: [{title: b}]")),
        ["AS-23@5:9", "AS-23@5:9"]
    );
    assert_eq!(rules(&node("component_type: EndNode\ninputs: [{title: a}]")), [""; 0]);
    let changed =
        "component_type: EndNode\ninputs: [{title: a, type: string}]\noutputs: [{title: a, type: integer}]";
    assert_eq!(errors(&node(changed)), ["AS-24@6:10"]);
    let tool = "component_type: ToolNode\ntool: {component_type: ServerTool, id: t, name: t, inputs: [{title: a, type: array, items: {type: string}}]}\n";
    assert_eq!(rules(&node(tool)), [""; 0]);
    assert_eq!(errors(&node(&format!("{tool}inputs: [{{title: a, type: integer}}]"))), ["AS-24@6:9"]);
}

/// AS-41, AS-42, AS-43: nodes that hold flows fit those flows.
#[test]
fn nodes_that_hold_flows_fit_them() {
    let inner = with(FLOW, "\nagentspec_version: 25.4.1\n", "\n").replace('\n', "\n    ");
    let node = |fields: &str| {
        format!(
            "id: n\nname: n\nagentspec_version: 26.3.1\n{fields}\n$referenced_components:\n  f:\n    {inner}\n"
        )
    };
    let map = "component_type: MapNode\nsubflow: {$component_ref: f}\n";
    assert_eq!(rules(&node(map)), [""; 0]);
    assert_eq!(
        rules(&node(&format!("{map}reducers: {{answer: append}}\noutputs: [{{title: collected_answer}}]"))),
        [""; 0]
    );
    assert_eq!(
        errors(&node(&format!(
            "{map}inputs: [{{title: iterated_city, type: array, items: {{type: string}}}}]"
        ))),
        [""; 0]
    );
    assert_eq!(errors(&node(&format!("{map}inputs: [{{title: city}}]"))), ["AS-23@6:9", "AS-23@6:9"]);
    assert_eq!(errors(&node(&format!("{map}reducers: {{answer: sum}}"))), ["AS-41@6:11"]);
    assert_eq!(errors(&node(&format!("{map}reducers: {{anwser: append}}"))), ["AS-41@6:11"]);
    assert_eq!(errors(&node(&format!("{map}reducers: {{answer: median}}"))), ["AS-06@6:20"]);
    let catch = "component_type: CatchExceptionNode\nsubflow: {$component_ref: f}\n";
    assert_eq!(rules(&node(catch)), ["AS-42"]);
    let outputs = "outputs: [{title: answer, type: string, default: ''}, {title: caught_exception_info}]";
    assert_eq!(rules(&node(&format!("{catch}{outputs}"))), [""; 0]);
    assert_eq!(
        rules(&node(&format!("{catch}{outputs}\nbranches: [next, caught_exception_branch]"))),
        [""; 0]
    );
    let branch = node(&format!("{catch}{outputs}"));
    let branch =
        with(&branch, "id: end, name: end,", "id: end, name: end, branch_name: caught_exception_branch,");
    assert_eq!(rules(&branch), ["AS-42"]);
    let parallel = "component_type: ParallelFlowNode\nsubflows: ";
    assert_eq!(rules(&node(&format!("{parallel}[{{$component_ref: f}}]"))), [""; 0]);
    assert_eq!(errors(&node(&format!("{parallel}[]"))), ["AS-43@5:11"]);
    assert_eq!(
        errors(&node(&format!("{parallel}[{{$component_ref: f}}, {{$component_ref: f}}]"))),
        ["AS-43@5:11"]
    );
}
