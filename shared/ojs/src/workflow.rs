//! The request that makes a workflow (OJS workflows §3): from a body to steps and what they need.

use crate::{Enqueue, OjsError, read, request};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use turnstone_domain::RawObject;
use turnstone_domain::ids::is_uuid_v7;
use turnstone_domain::workflow::{StepRole, WorkflowKind};
use utoipa::ToSchema;

/// A workflow has at most this many members.
pub const MAX_MEMBERS: usize = 1000;

/// A chain (`steps`), a group or a batch (`jobs`); or, without `type`, a graph whose steps have an `id` and `depends_on`.
/// Members are jobs as for `POST /ojs/v1/jobs`.
#[derive(Deserialize, ToSchema)]
#[schema(as = Create)]
#[schema(example = json!({"type": "chain", "name": "order", "steps": [
    {"type": "payment.take", "args": [17]}, {"type": "parcel.send", "args": [17]},
]}))]
pub struct CreateWorkflow {
    /// UUIDv7; made by the server when it is left out.
    id: Option<String>,
    /// chain, group or batch.
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    /// Of a chain or a graph: up to 1,000.
    #[schema(value_type = Option<Vec<Map<String, Value>>>)]
    steps: Option<Vec<RawObject>>,
    /// Of a group or a batch: up to 1,000.
    #[schema(value_type = Option<Vec<Enqueue>>)]
    jobs: Option<Vec<RawObject>>,
    /// Of a batch: on_complete, on_success, on_failure.
    #[schema(value_type = Option<Map<String, Value>>)]
    callbacks: Option<RawObject>,
}

/// A checked request; its jobs are still to be accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkflowRequest {
    /// The id that the client chose.
    pub id: Option<String>,
    /// The client's name for it.
    pub name: Option<String>,
    /// How its jobs depend on one another.
    pub kind: WorkflowKind,
    /// Members in order, then callbacks.
    pub steps: Vec<RequestedStep>,
}

/// A step of the request.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestedStep {
    /// Its place in the body, such as `steps[2]`.
    pub place: String,
    /// The client's name for it.
    pub name: Option<String>,
    /// Its role.
    pub role: StepRole,
    /// Positions of the steps that it needs.
    pub needs: Vec<usize>,
    /// The job, as an enqueue request.
    pub job: RawObject,
    /// True if its delay counts from the time at which it is enqueued.
    pub run_relative: bool,
    /// True if its `expires_at` counts from then.
    pub expiry_relative: bool,
}

impl WorkflowRequest {
    /// Reads and checks a body. With `type` it is a chain (`steps`), a group or a batch (`jobs`); without it is a graph,
    /// whose steps name one another in `depends_on`.
    ///
    /// # Errors
    /// 400 that names the member.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let CreateWorkflow { id, kind, name, steps, jobs, callbacks } = request::read(body)?;
        if id.as_ref().is_some_and(|id| !is_uuid_v7(id)) {
            let why = "must be a UUIDv7 in lower case; leave it out to get one";
            return Err(OjsError::invalid_request("id", why));
        }
        let kind = match kind {
            None => WorkflowKind::Graph,
            Some(word) => WorkflowKind::parse(&word).ok_or_else(|| {
                OjsError::invalid_request("type", "must be chain, group or batch, or be left out for a graph")
            })?,
        };
        let (list, members) = members(steps, jobs, kind)?;
        let mut steps = Vec::with_capacity(members.len());
        for (at, member) in members.into_iter().enumerate() {
            steps.push(step(format!("{list}[{at}]"), member)?);
        }
        match kind {
            WorkflowKind::Chain => {
                steps.iter_mut().enumerate().skip(1).for_each(|(at, step)| step.needs = vec![at - 1]);
            }
            WorkflowKind::Graph => connect(&mut steps)?,
            WorkflowKind::Group => {}
            WorkflowKind::Batch => {
                let all: Vec<usize> = (0..steps.len()).collect();
                steps.extend(self::callbacks(&callbacks.unwrap_or_default(), &all)?);
            }
        }
        Ok(Self { id, name, kind, steps })
    }
}

fn members(
    steps: Option<Vec<RawObject>>,
    jobs: Option<Vec<RawObject>>,
    kind: WorkflowKind,
) -> Result<(&'static str, Vec<RawObject>), OjsError> {
    let mut lists = [("steps", steps), ("jobs", jobs)];
    if matches!(kind, WorkflowKind::Group | WorkflowKind::Batch) {
        lists.reverse();
    }
    let usual = lists[0].0;
    let given = lists.into_iter().find_map(|(name, members)| Some((name, members?)));
    let (name, members) = given.ok_or_else(|| OjsError::invalid_request(usual, "is missing"))?;
    if (1..=MAX_MEMBERS).contains(&members.len()) {
        return Ok((name, members));
    }
    let why = format!("must have 1 to {MAX_MEMBERS} items, not {}", members.len());
    Err(OjsError::invalid_request(name, why))
}

/// Reads a step. An `id` that is no UUIDv7 is the client's name for the step; a UUIDv7 is the id of its job.
fn step(place: String, mut job: RawObject) -> Result<RequestedStep, OjsError> {
    let mut name = job.get("id").and_then(|id| id.parse::<String>().ok());
    match &name {
        Some(text) if text.is_empty() => {
            return Err(OjsError::invalid_request(&format!("{place}.id"), "must not be empty"));
        }
        Some(text) if !is_uuid_v7(text) => drop(job.remove("id")),
        Some(_) => {}
        None => name = job.get("name").and_then(|name| name.parse().ok()),
    }
    let options =
        job.get("options").and_then(|options| options.parse::<RawObject>().ok()).unwrap_or_default();
    let relative = |names: &[&str]| {
        let sent = names.iter().find_map(|name| options.given(name).or_else(|| job.given(name)));
        sent.and_then(|value| value.parse::<String>().ok()).is_some_and(|text| text.starts_with('+'))
    };
    let run_relative = relative(&["scheduled_at", "delay_until"]);
    let expiry_relative = relative(&["expires_at"]);
    let (role, needs) = (StepRole::Member, Vec::new());
    Ok(RequestedStep { place, name, role, needs, job, run_relative, expiry_relative })
}

/// Finds the steps that are needed by name, and refuses circles.
fn connect(steps: &mut [RequestedStep]) -> Result<(), OjsError> {
    let mut by_name = HashMap::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        if let Some(name) = &step.name
            && by_name.insert(name.clone(), at).is_some()
        {
            let why = format!("is `{}`, as another step's", read::shortened(name, 60));
            return Err(OjsError::invalid_request(&format!("{}.id", step.place), why));
        }
    }
    for step in steps.iter_mut() {
        let field = format!("{}.depends_on", step.place);
        let wrong = |why: String| OjsError::invalid_request(&field, why);
        let Some(sent) = step.job.remove("depends_on").filter(|sent| !sent.is_null()) else { continue };
        let names = read::value(&sent).and_then(|sent| read::texts(&sent)).map_err(wrong)?;
        let mut seen = HashSet::with_capacity(names.len());
        for name in names {
            let known = by_name.get(&name).copied();
            let shown = read::shortened(&name, 60);
            let at = known.ok_or_else(|| wrong(format!("names `{shown}`, which is no step's id")))?;
            if !seen.insert(at) {
                return Err(wrong(format!("names `{shown}` twice")));
            }
            step.needs.push(at);
        }
    }
    acyclic(steps)
}

fn acyclic(steps: &[RequestedStep]) -> Result<(), OjsError> {
    let mut waits: Vec<usize> = steps.iter().map(|step| step.needs.len()).collect();
    let mut next = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        step.needs.iter().for_each(|need| next[*need].push(at));
    }
    let mut free: Vec<usize> = (0..steps.len()).filter(|at| waits[*at] == 0).collect();
    while let Some(done) = free.pop() {
        for at in &next[done] {
            waits[*at] -= 1;
            if waits[*at] == 0 {
                free.push(*at);
            }
        }
    }
    match waits.iter().position(|waits| *waits > 0) {
        None => Ok(()),
        Some(at) => {
            let field = format!("{}.depends_on", steps[at].place);
            Err(OjsError::invalid_request(&field, "leads into a circle: the step could never start"))
        }
    }
}

fn callbacks(sent: &RawObject, members: &[usize]) -> Result<Vec<RequestedStep>, OjsError> {
    let roles = [StepRole::OnComplete, StepRole::OnSuccess, StepRole::OnFailure];
    if let Some((name, _)) = sent.iter().find(|(name, _)| roles.iter().all(|role| role.as_str() != *name)) {
        let field = format!("callbacks.{}", read::shortened(name, 60));
        return Err(OjsError::invalid_request(
            &field,
            "is unknown: on_complete, on_success and on_failure are not",
        ));
    }
    let mut steps = Vec::new();
    for role in roles {
        let Some(job) = sent.given(role.as_str()) else { continue };
        let place = format!("callbacks.{}", role.as_str());
        let job = read::raw_object(job).map_err(|why| OjsError::invalid_request(&place, why))?;
        steps.push(RequestedStep { role, needs: members.to_vec(), ..step(place, job)? });
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(body: &Value) -> Result<WorkflowRequest, OjsError> {
        WorkflowRequest::read(body.to_string().as_bytes())
    }

    fn needs(body: &Value) -> Vec<Vec<usize>> {
        read(body).unwrap().steps.into_iter().map(|step| step.needs).collect()
    }

    #[test]
    fn each_kind_says_what_waits_for_what() {
        let job = json!({"type": "a", "args": []});
        let chain = json!({"type": "chain", "steps": [job, job, job]});
        assert_eq!(needs(&chain), [vec![], vec![0], vec![1]]);
        assert_eq!(needs(&json!({"type": "group", "jobs": [job, job]})), [vec![], Vec::<usize>::new()]);
        let batch = json!({"type": "batch", "jobs": [job, job], "callbacks": {"on_failure": job, "on_complete": job}});
        assert_eq!(needs(&batch), [vec![], vec![], vec![0, 1], vec![0, 1]]);
        let graph = json!({"steps": [
            {"id": "c", "type": "a", "args": [], "depends_on": ["b", "a"]}, {"id": "a", "type": "a", "args": []},
            {"id": "b", "type": "a", "args": [], "depends_on": ["a"]},
        ]});
        assert_eq!(needs(&graph), [vec![2, 1], vec![], vec![1]]);
        let step = read(&graph).unwrap().steps.remove(0);
        assert_eq!((step.name.as_deref(), step.place.as_str()), (Some("c"), "steps[0]"));
        assert_eq!(serde_json::to_value(&step.job).unwrap(), job);
    }

    #[test]
    fn relative_and_absolute_times_are_distinguished() {
        let steps = json!([
            {"type": "a", "args": [], "options": {"delay_until": "+PT5S"}},
            {"type": "a", "args": [], "expires_at": "+PT5S", "scheduled_at": "2099-01-01T00:00:00Z"},
        ]);
        let read = read(&json!({"type": "chain", "steps": steps})).unwrap();
        let reported: Vec<_> =
            read.steps.iter().map(|step| (step.run_relative, step.expiry_relative)).collect();
        assert_eq!(reported, [(true, false), (false, true)]);
    }

    #[test]
    fn wrong_requests_name_their_member() {
        let job = json!({"type": "a", "args": []});
        let named = |id: &str, needs: Value| json!({"id": id, "type": "a", "args": [], "depends_on": needs});
        for (body, field) in [
            (json!({"type": "ring", "steps": [job]}), "type"),
            (json!({"type": "chain"}), "steps"),
            (json!({"type": "chain", "steps": []}), "steps"),
            (json!({"type": "group", "jobs": {}}), "jobs"),
            (json!({"type": "group", "jobs": [3]}), "jobs[0]"),
            (json!({"type": "group", "jobs": vec![job.clone(); MAX_MEMBERS + 1]}), "jobs"),
            (json!({"id": "x", "type": "chain", "steps": [job]}), "id"),
            (json!({"name": 3, "type": "chain", "steps": [job]}), "name"),
            (json!({"type": "batch", "jobs": [job], "callbacks": []}), "callbacks"),
            (json!({"type": "batch", "jobs": [job], "callbacks": {"on_succes": job}}), "callbacks.on_succes"),
            (
                json!({"type": "batch", "jobs": [job], "callbacks": {"on_success": []}}),
                "callbacks.on_success",
            ),
            (json!({"steps": [named("a", json!(["z"]))]}), "steps[0].depends_on"),
            (json!({"steps": [named("a", json!(["a"]))]}), "steps[0].depends_on"),
            (json!({"steps": [named("a", json!("b")), named("b", json!([]))]}), "steps[0].depends_on"),
            (json!({"steps": [named("a", json!([])), named("a", json!([]))]}), "steps[1].id"),
            (json!({"steps": [named("a", json!([])), named("b", json!(["a", "a"]))]}), "steps[1].depends_on"),
            (json!({"steps": [named("a", json!(["b"])), named("b", json!(["a"]))]}), "steps[0].depends_on"),
        ] {
            let error = read(&body).unwrap_err();
            assert_eq!((error.status, error.details["field"].as_str()), (400, Some(field)), "{error}");
        }
    }
}
