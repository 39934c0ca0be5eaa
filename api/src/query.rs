//! Unknown query parameters are refused: a filter with a misspelt name would filter nothing, and a cursor with another
//! name would return the first page again.
//!
//! The known parameters of an endpoint are those in the OpenAPI document. An endpoint without any is not checked.

use crate::reply::Failure;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use turnstone_ojs::{OjsError, meant};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

/// The parameters of paged lists. A client may send page and element parameters together.
const PARTS: [&str; 5] = ["page", "per_page", "limit", "offset", "cursor"];
/// Other common names of the parameters.
const SAME: [(&str, &[&str]); 6] = [
    ("cursor", &["after", "since"]),
    ("after", &["since", "cursor"]),
    ("since", &["after"]),
    ("limit", &["per_page"]),
    ("per_page", &["limit"]),
    ("offset", &["page", "after"]),
];

/// The paths below which the Agent Protocol defines the parameters.
const OTHERS: &str = "/agents/";

/// The query parameters of each endpoint.
pub(crate) struct Described(HashMap<(String, Method), BTreeSet<String>>);

impl Described {
    /// Returns the parameters that the document describes.
    pub(crate) fn by(document: &OpenApi) -> Arc<Self> {
        let mut known = HashMap::new();
        for (path, item) in document.paths.paths.iter().filter(|(path, _)| !path.starts_with(OTHERS)) {
            let operations = [
                (Method::GET, &item.get),
                (Method::PUT, &item.put),
                (Method::POST, &item.post),
                (Method::DELETE, &item.delete),
                (Method::PATCH, &item.patch),
            ];
            for (method, operation) in operations {
                let names = operation.as_ref().map(names).unwrap_or_default();
                if !names.is_empty() {
                    known.insert((path.clone(), method), names);
                }
            }
        }
        Arc::new(Self(known))
    }

    /// Returns the error about these parameters, if there is one.
    fn wrong(&self, path: &str, method: &Method, sent: &[(String, String)]) -> Option<OjsError> {
        let known = self.0.get(&(path.to_owned(), method.clone()))?;
        let of_parts = |name: &str| PARTS.contains(&name);
        // A list that is not paged is returned whole, with any paging parameter.
        let in_parts = !known.iter().any(|name| of_parts(name))
            || sent.iter().any(|(name, _)| of_parts(name) && known.contains(name));
        let unknown = |name: &&String| !(known.contains(*name) || in_parts && of_parts(name));
        let name = sent.iter().map(|(name, _)| name).find(unknown)?;
        let same = SAME.iter().filter(|(other, _)| other == name).flat_map(|(_, same)| same.iter().copied());
        let meant = same
            .into_iter()
            .find(|same| known.contains(*same))
            .or_else(|| meant(name, known.iter().map(String::as_str)));
        let shown: String = name.chars().take(100).collect();
        let why = match meant {
            Some(meant) => format!("is no parameter of this endpoint; did you mean `{meant}`?"),
            None => {
                let all = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                format!("is no parameter of this endpoint, which has {all}")
            }
        };
        Some(OjsError::invalid_request(&shown, why))
    }
}

fn names(operation: &Operation) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for parameter in operation.parameters.iter().flatten() {
        if let RefOr::T(Parameter { name, parameter_in: ParameterIn::Query, .. }) = parameter {
            names.insert(name.clone());
        }
    }
    if names.contains("offset") {
        names.insert("cursor".to_owned());
    }
    names
}

/// Refuses unknown parameters.
pub(crate) async fn check(State(known): State<Arc<Described>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let sent = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    // A query that cannot be parsed is reported where it is read.
    let wrong =
        path.zip(sent.ok()).and_then(|(path, Query(sent))| known.wrong(path, request.method(), &sent));
    match wrong {
        Some(wrong) => Failure::from(wrong).into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_endpoint_does_not_describe_is_refused_by_name() {
        let known = ["state", "page", "per_page"].map(str::to_owned).into();
        let whole = ["enabled".to_owned()].into();
        let lists = [(("/jobs".to_owned(), Method::GET), known), (("/crons".to_owned(), Method::GET), whole)];
        let described = Described(lists.into());
        let wrong = |path: &str, names: &[&str]| {
            let sent: Vec<_> = names.iter().map(|name| ((*name).to_owned(), "1".to_owned())).collect();
            described.wrong(path, &Method::GET, &sent).map(|error| error.message)
        };
        assert_eq!(wrong("/jobs", &["state", "page"]), None);
        assert_eq!(wrong("/other", &["anything"]), None, "it describes none");
        assert_eq!(wrong("/crons", &["page", "per_page"]), None, "it does not come in parts");
        assert!(wrong("/crons", &["enabeld"]).unwrap().contains("did you mean `enabled`?"));
        assert!(wrong("/jobs", &["statee"]).unwrap().contains("did you mean `state`?"));
        assert!(wrong("/jobs", &["limit"]).unwrap().contains("did you mean `per_page`?"));
        assert_eq!(wrong("/jobs", &["limit", "per_page"]), None, "both together are understood");
        let reported = wrong("/jobs", &["colour"]).unwrap();
        assert!(reported.contains("which has `page`, `per_page`, `state`"), "{reported}");
    }
}
