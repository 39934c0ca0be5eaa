//! Every operation, as every role, for the own and another tenant. The cells come from `/openapi.json`.

use super::Client;
use crate::ojs::on_sqlite_first;
use futures::{StreamExt as _, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use turnstone_tests::{Backend, OjsServer};

const ROLES: [&str; 6] = ["viewer", "submitter", "worker", "approver", "operator", "admin"];
/// So many requests at once.
const AT_ONCE: usize = 8;

const HEAD: &str = "# Access

Use this page to look up the role and the scope that an operation needs. [SECURITY](SECURITY.md#principals) says how to
give a client a key with roles. A request whose key lacks the role or the scope is refused with 403. Where a key is needed,
a request without a valid one is refused with 401.

| role | who may use the operation |
|---|---|
| `viewer`, `submitter`, `worker`, `approver`, `operator`, `admin` | a key with this role. `admin` includes every role; `submitter`, `approver` and `operator` include `viewer` |
| any | every key |
| no key | every client, also without a key |

| scope | the data that the operation reads and changes |
|---|---|
| tenant | the data of one tenant: that of the key. For a key of the fleet it is the tenant in the header `X-OJS-Tenant`, or without the header all tenants |
| fleet | data that tenants share. The key must be one of the fleet, and the request without the header |
| none | no data of a tenant |

The page is generated from `security(…)` beside each operation, which `/openapi.json` contains as well. Do not edit it;
run `TURNSTONE_BLESS=1 cargo test --workspace --test it access::matrix::the_page`. An operation without a declaration
stops the server at its start.
";

/// An operation as the document declares it.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: String,
    tag: String,
    /// One is needed; empty for any.
    pub(super) roles: Vec<String>,
    /// `tenant` or `fleet`; `None` for an open operation.
    scope: Option<String>,
}

impl Operation {
    /// Returns true if a key with this role needs no other for the operation.
    fn accepts(&self, role: &str) -> bool {
        let includes = |needed: &String| {
            role == needed
                || role == "admin"
                || (needed == "viewer" && matches!(role, "submitter" | "approver" | "operator"))
        };
        self.roles.is_empty() || self.roles.iter().any(includes)
    }

    /// Returns the member of a refusal's details that names the missing role or scope.
    fn refusal(&self, role: &str, is_tenant: bool) -> Option<&'static str> {
        let scope = self.scope.as_deref()?;
        match (self.accepts(role), scope == "fleet" && is_tenant) {
            (false, _) => Some("role"),
            (true, true) => Some("scope"),
            (true, false) => None,
        }
    }

    fn path_of(&self, id: &str) -> String {
        let (path, mut parts) = (String::new(), self.path.split('{'));
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(path + &first, |path, part| path + id + part.split_once('}').map_or("", |(_, rest)| rest))
    }
}

pub(super) async fn operations(server: &OjsServer) -> Vec<Operation> {
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let declared = operation["security"].as_array().unwrap();
            let pairs: Vec<_> = declared.iter().flat_map(|pair| pair.as_object().unwrap()).collect();
            let roles = pairs.iter().flat_map(|(_, roles)| roles.as_array().unwrap());
            operations.push(Operation {
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                tag: operation["tags"][0].as_str().unwrap_or_default().to_owned(),
                roles: roles.map(|role| role.as_str().unwrap().to_owned()).collect(),
                scope: pairs.first().map(|(scope, _)| (*scope).clone()),
            });
        }
    }
    assert!(operations.len() > 190, "{}", operations.len());
    operations
}

/// Sends a request without a body; returns the status, and the details of an error. Streams are not read.
async fn request(
    http: &reqwest::Client,
    client: &Client<'_>,
    (method, path): (&Method, &str),
    tenant: Option<&str>,
) -> (StatusCode, Value) {
    let url = format!("{}{path}", client.server.fleet.url);
    let mut request = http.request(method.clone(), url).bearer_auth(&client.secret);
    if let Some(tenant) = tenant {
        request = request.header("X-OJS-Tenant", tenant);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let text = if status.is_client_error() { answer.text().await.unwrap() } else { String::new() };
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    (status, body["error"]["details"].clone())
}

/// A cell of the matrix: the principal, and the expected refusal.
struct Cell<'a> {
    client: &'a Client<'a>,
    operation: &'a Operation,
    tenant: Option<&'a str>,
    refusal: Option<&'static str>,
}

impl Cell<'_> {
    async fn wrong(&self, http: &reqwest::Client) -> Option<String> {
        let Operation { method, path, .. } = self.operation;
        let sent = self.operation.path_of("00000000-0000-7000-8000-000000000000");
        let (status, details) = request(http, self.client, (method, &sent), self.tenant).await;
        let is_refused = |member: &str| status == StatusCode::FORBIDDEN && details.get(member).is_some();
        let fits = match self.refusal {
            Some("tenant") => status == StatusCode::FORBIDDEN,
            Some(member) => is_refused(member),
            None => status != StatusCode::UNAUTHORIZED && !is_refused("role") && !is_refused("scope"),
        };
        (!fits)
            .then(|| format!("{method} {path} as {} {:?}: {status} {details}", self.client.id, self.tenant))
    }
}

async fn every_operation_accepts_its_roles_and_scope_alone(server: &OjsServer) {
    let (operations, http) = (operations(server).await, turnstone_tests::http::client());
    let mut keys = Vec::new();
    for role in ROLES {
        let of_fleet = json!({"name": format!("{role}-of-fleet"), "roles": [role]});
        let mut both = [Client::of(server, "alpha", role).await, Client::new(server, &of_fleet).await];
        both[0].id = format!("{role} of alpha");
        both[1].id = format!("{role} of the fleet");
        keys.push((role, both));
    }
    let mut cells = Vec::new();
    for operation in &operations {
        for (role, [alpha, fleet]) in &keys {
            let cell = |client, tenant, refusal| Cell { client, operation, tenant, refusal };
            cells.push(cell(alpha, None, operation.refusal(role, true)));
            cells.push(cell(fleet, None, operation.refusal(role, false)));
            if *role == "admin" {
                let other = operation.scope.is_some().then_some("tenant");
                cells.push(cell(alpha, Some("beta"), other));
                cells.push(cell(fleet, Some("alpha"), operation.refusal(role, true)));
            }
        }
    }
    let checked = stream::iter(&cells).map(|cell| cell.wrong(&http)).buffer_unordered(AT_ONCE);
    let wrong: Vec<String> = checked.filter_map(std::future::ready).collect().await;
    assert!(wrong.is_empty(), "{} of {} cells:\n{}", wrong.len(), cells.len(), wrong.join("\n"));
}

/// The admin of a tenant gets the same answer for the id of another tenant as for one that does not exist.
async fn ids_of_another_tenant_do_not_exist(server: &OjsServer) {
    let (operations, http) = (operations(server).await, turnstone_tests::http::client());
    let alpha = Client::of(server, "alpha", "admin").await;
    let mut ids = vec![alpha.id.clone()];
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no id: {value}")).to_owned();
    let agent = json!({"type": "agent.ask", "args": ["x"], "ext_agent_model": "test/m"});
    let job = alpha.post("/ojs/v1/jobs", &agent).await.expect(201).json();
    let job = text(&job["job"]["id"]);
    ids.push(server.fleet.engagement_of(&job).await);
    ids.push(job.clone());
    let step = json!({"type": "a.b", "args": []});
    let chain = json!({"type": "chain", "name": "c", "steps": [step, step]});
    let chain = alpha.post("/ojs/v1/workflows", &chain).await.expect(201).json();
    ids.push(text(&chain["workflow"]["id"]));
    let cron = json!({"name": "alphas-cron", "expression": "* * * * *", "job_template": step});
    alpha.post("/ojs/v1/cron", &cron).await.expect(201);
    ids.push("alphas-cron".to_owned());
    let hook = json!({"url": "http://127.0.0.1:9/x", "events": ["*"]});
    let hook = alpha.post("/ojs/v1/webhooks/subscriptions", &hook).await.expect(201).json();
    ids.push(text(&hook["subscription"]["id"]));
    let beta = Client::of(server, "beta", "admin").await;
    let mut wrong = Vec::new();
    let by_id = operations.iter().filter(|one| one.scope.as_deref() == Some("tenant"));
    // Names of queues belong to all tenants.
    let by_id = by_id.filter(|one| !one.path.contains("/queues/{name}"));
    for operation in by_id.filter(|one| one.path.contains("{id}") || one.path.contains("{name}")) {
        let Operation { method, path, .. } = operation;
        let status = async |id: &str| request(&http, &beta, (method, &operation.path_of(id)), None).await.0;
        let unknown = status("00000000-0000-7000-8000-000000000000").await;
        for id in &ids {
            let known = status(id).await;
            if known != unknown {
                wrong.push(format!("{method} {path} of {id}: {known}, and of an unknown id {unknown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    alpha.get(&format!("/ojs/v1/jobs/{job}")).await.expect(200);
    alpha.get("/ojs/v1/cron/alphas-cron").await.expect(200);
}

on_sqlite_first!(every_operation_accepts_its_roles_and_scope_alone, ids_of_another_tenant_do_not_exist);

#[tokio::test]
async fn the_page_of_access_is_generated_from_the_document() {
    let server = OjsServer::start(Backend::Sqlite).await;
    let mut page = HEAD.to_owned();
    let operations = operations(&server).await;
    let mut tags: Vec<&str> = operations.iter().map(|one| one.tag.as_str()).collect();
    tags.sort_unstable();
    tags.dedup();
    for tag in tags {
        let _ = write!(page, "\n## {tag}\n\n| operation | role | scope |\n|---|---|---|\n");
        for one in operations.iter().filter(|one| one.tag == tag) {
            let roles = match (&one.scope, one.roles.as_slice()) {
                (None, _) => "no key".to_owned(),
                (_, []) => "any".to_owned(),
                (_, roles) => roles.join(" or "),
            };
            let scope = one.scope.as_deref().unwrap_or("none");
            let _ = writeln!(page, "| `{} {}` | {roles} | {scope} |", one.method, one.path);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/ACCESS.md");
    if std::env::var_os("TURNSTONE_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let help = "run `TURNSTONE_BLESS=1 cargo test --workspace --test it access::matrix::the_page`";
    assert_eq!(
        std::fs::read_to_string(&path).unwrap_or_default(),
        page,
        "docs/ACCESS.md is out of date: {help}"
    );
    server.fleet.end().await;
}
