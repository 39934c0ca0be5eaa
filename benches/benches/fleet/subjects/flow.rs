//! A flow of Agent Spec with a thousand iterations, one with two hundred nodes in a row, and turns of an agent beside them.

use super::long::stored;
use crate::Pace;
use crate::figures::Figure;
use crate::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_benches::jobs::agent_job;
use turnstone_domain::agent::{AgentFormat, Capability, FlowDocument, Limits};
use turnstone_domain::{AgentDefinition, NewJob, RawJson};

/// An agent asks for its tool in every turn; a node of a flow is answered with a text.
const SCRIPT: &str = "rules:\n  - {when: {tools_include: [clock]}, answer: {tool_calls: [{name: clock, arguments: {}}], usage: {input: 10, output: 1}}}\n  \
                      - answer: {text: seen, usage: {input: 10, output: 1}}\n";
const SETTINGS: &str =
    "[providers.bench]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_model = 'm'\n";
const ENDED: &str = "SELECT count(*) FROM jobs WHERE ended_at IS NOT NULL";

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let (iterations, nodes, turns) = if pace.trial { (20, 20, 20) } else { (1_000, 200, 500) };
    let mut figures = Vec::new();
    for postgres in Stage::EACH {
        let rates = [
            ("turns of an agent", agent(turns), i64::from(turns), 1),
            ("iterations of a map", mapping(iterations), iterations, 3),
            ("nodes in a row", row(nodes), nodes, 1),
        ];
        let mut turns_per_s = 0.0;
        for (what, job, count, turns_each) in rates {
            let stage = Stage::start(postgres).await;
            let name = |text: &str| format!("{}: {what}, {text}", stage.name());
            let _worker = stage.worker("one", 1, "30s", SETTINGS, SCRIPT).await;
            stage.push(vec![job]).await;
            stage.at_least(ENDED, 1).await;
            let stretch =
                |from: i64, to: i64| [count * from / 100, count * to / 100].map(|at| at * turns_each);
            let [early, late] = [stretch(10, 30), stretch(70, 90)];
            let [took, takes] = [time(&stage, early).await, time(&stage, late).await];
            let per_s = |ms: f64| 1_000.0 / (ms * turns_each as f64).max(0.001);
            let figure = Figure::of(name("per second"), "/s", vec![per_s(took), per_s(takes)]);
            if turns_per_s == 0.0 {
                turns_per_s = figure.median;
                figures.push(figure);
                continue;
            }
            let rate = figure.median;
            figures.push(
                figure.beside(turns_per_s).aiming("at least 90 % of turns", |_| rate >= 0.9 * turns_per_s),
            );
            for (what, unit, [early, late]) in [
                ("time of one, late", "ms", [took, takes].map(|ms| ms * turns_each as f64)),
                (
                    "text in the rows of one, late",
                    "bytes",
                    [stored(&stage, early).await, stored(&stage, late).await],
                ),
            ] {
                let figure = Figure::of(name(what), unit, vec![late]).after(early);
                figures.push(figure.aiming("at most 1.2 times the early one", |_| late <= early * 1.2));
            }
        }
    }
    figures
}

/// Milliseconds of a turn between two of them.
async fn time(stage: &Stage, [from, to]: [i64; 2]) -> f64 {
    let at = async |turn: i64| {
        stage.place().number(&format!("SELECT max(at) FROM journal WHERE turn <= {turn}")).await
    };
    (at(to).await - at(from).await) as f64 / (to - from) as f64
}

/// An agent of so many turns.
fn agent(turns: u32) -> NewJob {
    let agent = AgentDefinition {
        name: "bench.agent".to_owned(),
        capabilities: vec![Capability::named("clock")],
        limits: Limits { max_turns: turns, ..Limits::default() },
        ..AgentDefinition::default()
    };
    agent_job(agent, "Go on.")
}

/// A map with a model call for each of so many items.
fn mapping(items: i64) -> NewJob {
    let each = flow(
        "each",
        &[start("e-start", &[text("q")]), llm("e-look", "{{q}}"), end("e-end", &[text("generated_text")])],
        &[],
    );
    let map = part("MapNode", "map", json!({"subflow": each}));
    let nodes = [start("start", &[list("iterated_q")]), map, end("end", &[list("collected_generated_text")])];
    let items: Vec<String> = (0..items).map(|item| item.to_string()).collect();
    flow_job(flow("mapping", &nodes, &[model()]), json!({"iterated_q": items}))
}

/// So many nodes with a model call, one after another.
fn row(count: i64) -> NewJob {
    let mut nodes = vec![start("start", &[])];
    nodes.extend((0..count).map(|at| llm(&format!("look-{at}"), "look")));
    nodes.push(end("end", &[text("generated_text")]));
    flow_job(flow("row", &nodes, &[model()]), json!({}))
}

fn flow_job(mut document: Value, inputs: Value) -> NewJob {
    document["agentspec_version"] = "26.2.0".into();
    let agent = AgentDefinition {
        name: "bench.flow".to_owned(),
        format: AgentFormat::AgentSpec,
        limits: Limits { max_turns: 10_000, ..Limits::default() },
        flow: Some(FlowDocument::new(document.to_string(), BTreeMap::new())),
        ..AgentDefinition::default()
    };
    let mut job = agent_job(agent, "");
    job.envelope.args = RawJson::of(&json!([inputs]));
    job
}

fn part(class: &str, id: &str, mut fields: Value) -> Value {
    fields["component_type"] = class.into();
    fields["id"] = id.into();
    fields["name"] = id.into();
    fields
}

fn text(title: &str) -> Value {
    json!({"title": title, "type": "string"})
}

fn list(title: &str) -> Value {
    json!({"title": title, "type": "array", "items": {"type": "string"}})
}

fn start(id: &str, inputs: &[Value]) -> Value {
    part("StartNode", id, json!({"inputs": inputs, "outputs": inputs}))
}

fn end(id: &str, outputs: &[Value]) -> Value {
    part("EndNode", id, json!({"inputs": outputs, "outputs": outputs}))
}

fn model() -> Value {
    part("LlmConfig", "llm", json!({"model_id": "m", "api_provider": "bench"}))
}

fn llm(id: &str, prompt: &str) -> Value {
    part("LlmNode", id, json!({"llm_config": {"$component_ref": "llm"}, "prompt_template": prompt}))
}

/// A flow of these nodes one after another, and other components that they refer to.
fn flow(id: &str, nodes: &[Value], others: &[Value]) -> Value {
    let named = |node: &Value| json!({"$component_ref": node["id"]});
    let edges = nodes.windows(2).map(|two| {
        let id = format!("{}-{}", two[0]["id"], two[1]["id"]).replace('"', "");
        part("ControlFlowEdge", &id, json!({"from_node": named(&two[0]), "to_node": named(&two[1])}))
    });
    let parts = nodes
        .iter()
        .chain(others)
        .map(|part| (part["id"].as_str().unwrap_or_default().to_owned(), part.clone()));
    let fields = json!({
        "inputs": nodes[0]["inputs"], "outputs": nodes[nodes.len() - 1]["outputs"],
        "start_node": named(&nodes[0]), "nodes": nodes.iter().map(named).collect::<Vec<_>>(),
        "control_flow_connections": edges.collect::<Vec<_>>(),
        "$referenced_components": parts.collect::<serde_json::Map<_, _>>(),
    });
    part("Flow", id, fields)
}
