//! Random workflows with random ends, compared with a model.

use super::super::on_every_store;
use super::{ack, fail, fetched, made, shown};
use crate::random::Random;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_every_store![random_graphs_end_as_the_model_says];

/// The state of a step in the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Waiting,
    Enqueued,
    Succeeded,
    Failed,
}

struct Model {
    needs: Vec<Vec<usize>>,
    steps: Vec<Step>,
    failed: bool,
}

impl Model {
    fn new(needs: Vec<Vec<usize>>) -> Self {
        let mut model = Self { steps: vec![Step::Waiting; needs.len()], needs, failed: false };
        model.enqueue();
        model
    }

    fn enqueue(&mut self) {
        for at in 0..self.steps.len() {
            let ready = self.needs[at].iter().all(|need| self.steps[*need] == Step::Succeeded);
            if self.steps[at] == Step::Waiting && ready && !self.failed {
                self.steps[at] = Step::Enqueued;
            }
        }
    }

    fn end(&mut self, at: usize, succeeded: bool) {
        self.steps[at] = if succeeded { Step::Succeeded } else { Step::Failed };
        self.failed |= !succeeded;
        self.enqueue();
    }

    fn state(&self) -> &'static str {
        match () {
            () if self.failed => "failed",
            () if self.steps.iter().all(|step| *step == Step::Succeeded) => "completed",
            () => "running",
        }
    }
}

async fn random_graphs_end_as_the_model_says(server: &OjsServer) {
    let mut random = Random::new(4);
    for round in 0..12 {
        let size = 2 + random.below(8);
        let mut needs: Vec<Vec<usize>> = Vec::new();
        for at in 0..size {
            needs.push((0..at).filter(|_| random.below(3) == 0).collect());
        }
        let steps: Vec<Value> = needs
            .iter()
            .enumerate()
            .map(|(at, needs)| {
                let names: Vec<String> = needs.iter().map(|need| format!("s{need}")).collect();
                json!({"id": format!("s{at}"), "type": "t", "args": [at], "depends_on": names, "options": {"queue": "flow"}})
            })
            .collect();
        let id = made(server, &json!({"steps": steps})).await;
        let mut model = Model::new(needs);
        let mut held: Vec<Value> = Vec::new();
        loop {
            held.extend(fetched(server).await);
            let open = model.steps.iter().filter(|step| **step == Step::Enqueued).count();
            assert_eq!(held.len(), open, "round {round}: {:?} {:?}", model.needs, model.steps);
            if held.is_empty() {
                break;
            }
            let job = held.swap_remove(random.below(held.len()));
            let at = usize::try_from(job["args"][0].as_u64().unwrap()).unwrap();
            let expected: Vec<Value> = model.needs[at].iter().map(|need| json!(need)).collect();
            assert_eq!(
                job.get("parent_results").and_then(Value::as_array).cloned().unwrap_or_default(),
                expected
            );
            let succeeds = random.below(10) > 0;
            if succeeds {
                ack(server, &job, json!(at)).await
            } else {
                fail(server, &job).await
            }
            model.end(at, succeeds);
            let workflow = shown(server, &id).await;
            let succeeded = model.steps.iter().filter(|step| **step == Step::Succeeded).count();
            assert_eq!(
                (&workflow["state"], &workflow["steps_completed"]),
                (&json!(model.state()), &json!(succeeded))
            );
        }
    }
}
