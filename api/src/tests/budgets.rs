//! Shared budgets: the refusals when one is set.

use super::server::Server;
use crate::ApiOptions;
use axum::body::Body;
use axum::http::Request;
use serde_json::json;

#[tokio::test]
async fn a_budget_in_money_is_in_the_currency_of_the_prices() {
    let server = Server::with(ApiOptions { currency: Some("EUR".to_owned()), ..ApiOptions::default() }).await;
    let put = async |body: serde_json::Value| {
        let request = Request::put("/budgets/fleet").header("Content-Type", "application/json");
        server.request(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let reply = put(json!({"cost_per_day": "5", "currency": "USD"})).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
    assert!(reply.text.contains("the price table is in EUR"), "{}", reply.text);
    let reply = put(json!({"cost_per_day": "5"})).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["currency"]), (200, &json!("EUR")), "{}", reply.text);
    assert_eq!(put(json!({"tokens": 5, "currency": "USD"})).await.status, 200, "it limits no money");
}
