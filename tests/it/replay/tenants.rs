//! Imported documents: their tenant, their retention, and their spent budget.

use super::{job, ran, trip};
use crate::inputs::register;
use crate::stores::on_stores;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::record::EngagementRecord;
use turnstone_tests::{Backend, Fleet, OjsServer, Reply, model_server};

on_stores!(
    everywhere: [],
    sqlite_first: [
        a_document_exposes_nothing_of_another_tenant,
        an_import_is_kept_from_its_import_on,
        usage_above_the_budget_is_imported_as_it_is,
    ],
);

/// Returns the record of an engagement.
async fn record(fleet: &Fleet, engagement: &str) -> EngagementRecord {
    let client = turnstone_tests::http::client();
    let answer = client.get(format!("{}/engagements/{engagement}/export", fleet.url)).send().await.unwrap();
    EngagementRecord::read(&answer.text().await.unwrap()).unwrap()
}

async fn imported(fleet: &Fleet, record: &EngagementRecord) -> (u16, Value) {
    let document = record.write().unwrap();
    let (status, answer) = fleet.send(Method::POST, "/engagements/import", document).await;
    (status.as_u16(), answer)
}

/// RS-31 across tenants: the tenant that a document names is ignored.
async fn a_document_exposes_nothing_of_another_tenant(backend: Backend) {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("state_set", json!({"key": "secret", "value": "of a"})),
        _ => Reply::text("done"),
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    let fleet = &server.fleet;
    register(fleet, "  state: {mode: long_running}\n").await;
    let job = json!({"type": "agent.desk", "args": ["go"], "ext_agent_model": "m",
                     "meta": {"agent": "desk", "tenant_id": "a", "user": {"id": "u-1"}}});
    let engagement = ran(fleet, &job).await;
    let own = fleet.get(&format!("/engagements/{engagement}/state")).await;
    assert_eq!(own["entries"][0]["value"], "of a", "{own:#}");
    let mut forged = record(fleet, &engagement).await;
    let (id, new) = ("01890000-0000-7000-8000-00000000000b", "01890000-0000-7000-8000-00000000000c");
    forged.job.id = new.into();
    forged.job.engagement.as_mut().unwrap().id = id.into();
    (forged.messages, forged.checkpoints, forged.calls) = (Vec::new(), Vec::new(), Vec::new());
    (forged.events, forged.state) = (Vec::new(), Vec::new());
    forged.end.tokens_used = 0;
    let headers = [("x-ojs-tenant", "b"), ("content-type", "application/x-ndjson")];
    let document = forged.write().unwrap();
    server.send(Method::POST, "/engagements/import", &headers, document.as_str()).await.expect(201);
    assert_eq!(fleet.number("SELECT count(*) FROM jobs WHERE tenant = 'b'").await, 1);
    let shown = fleet.get(&format!("/engagements/{id}/state")).await;
    assert_eq!(shown["entries"], json!([]), "{shown:#}");
    let shown = fleet.get(&format!("/ojs/v1/jobs/{new}")).await;
    assert_eq!(shown["job"]["meta"]["tenant_id"], "b", "{shown:#}");
    server.fleet.end().await;
}

async fn an_import_is_kept_from_its_import_on(backend: Backend) {
    let from = Fleet::builder().model(trip).start().await;
    let engagement = ran(&from, &job("go")).await;
    let record = record(&from, &engagement).await;
    let to = Fleet::builder().on(backend).workers(0).start().await;
    let month = 40 * 24 * 3_600_000;
    to.clock.advance_ms(month);
    assert_eq!(imported(&to, &record).await.0, 201);
    for _ in 0..3 {
        to.clock.advance_ms(3_600_000);
        to.tick().await;
    }
    assert_eq!(to.get(&format!("/engagements/{engagement}")).await["turns"], 4);
    to.clock.advance_ms(month);
    to.until("it is deleted", async || {
        to.tick().await;
        to.number("SELECT count(*) FROM jobs").await == 0
    })
    .await;
    from.end().await;
    to.end().await;
}

async fn usage_above_the_budget_is_imported_as_it_is(backend: Backend) {
    let from = Fleet::builder().model(trip).start().await;
    let engagement = ran(&from, &job("go")).await;
    let mut record = record(&from, &engagement).await;
    let used = record.end.tokens_used;
    assert!(used > 1);
    record.job.engagement.as_mut().unwrap().agent.limits.token_budget = Some(1);
    let to = Fleet::builder().on(backend).workers(0).start().await;
    let (status, answer) = imported(&to, &record).await;
    assert_eq!(status, 201, "{answer:#}");
    let shown = to.get(&format!("/engagements/{engagement}")).await;
    assert_eq!((&shown["tokens"]["used"], &shown["tokens"]["limit"]), (&json!(used), &json!(1)), "{shown:#}");
    from.end().await;
    to.end().await;
}
