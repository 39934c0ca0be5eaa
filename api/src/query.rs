//! Query parameters that are unknown or given twice are refused. A filter with a misspelt name would filter nothing,
//! and a cursor with another name would return the first page again. Only one of two values could hold.
//!
//! The known parameters of an endpoint are those in the OpenAPI document, so that no endpoint takes others than it
//! describes. An endpoint that describes none takes none.

use crate::reply::Failure;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use turnstone_ojs::{OjsError, meant};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{OpenApi, RefOr};

/// Other common names of the parameters.
const SAME: [(&str, &[&str]); 6] = [
    ("cursor", &["after", "since"]),
    ("after", &["since", "cursor"]),
    ("since", &["after"]),
    ("limit", &["per_page"]),
    ("per_page", &["limit"]),
    ("offset", &["page", "after"]),
];

/// The most characters of an unknown name in an error.
const SHOWN: usize = 100;

/// The query parameters of each endpoint that has some.
pub(crate) struct Described(HashMap<String, Vec<(Method, BTreeSet<String>)>>);

impl Described {
    /// Returns the parameters that the document describes.
    pub(crate) fn by(document: &OpenApi) -> Arc<Self> {
        let mut known: HashMap<String, Vec<_>> = HashMap::new();
        for (path, item) in &document.paths.paths {
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
                    known.entry(path.clone()).or_default().push((method, names));
                }
            }
        }
        Arc::new(Self(known))
    }

    /// Returns the names that an endpoint takes.
    fn known(&self, path: &str, method: &Method) -> Option<&BTreeSet<String>> {
        // The router answers HEAD by the endpoint of GET.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.iter().find(|(known, _)| known == method).map(|(_, names)| names)
    }

    /// Returns the error about the first name that is unknown or given twice, if there is one.
    fn wrong(&self, path: &str, method: &Method, sent: &[(String, String)]) -> Option<OjsError> {
        let none = BTreeSet::new();
        let known = self.known(path, method).unwrap_or(&none);
        let mut given = BTreeSet::new();
        let (name, _) = sent.iter().find(|(name, _)| !known.contains(name) || !given.insert(name))?;
        if known.contains(name) {
            return Some(OjsError::invalid_request(name, "is given twice; give it once"));
        }
        let same = SAME.iter().filter(|(other, _)| other == name).flat_map(|(_, same)| same.iter().copied());
        let meant = same
            .into_iter()
            .find(|same| known.contains(*same))
            .or_else(|| meant(name, known.iter().map(String::as_str)));
        let all = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let all = if all.is_empty() { "none" } else { &all };
        let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        let why = format!("is no parameter of this endpoint, which has {all}{meant}");
        let shown: String = name.chars().take(SHOWN).collect();
        Some(
            OjsError::invalid_request(&shown, why).with("allowed", known.iter().cloned().collect::<Vec<_>>()),
        )
    }

    fn refused(&self, path: Option<&str>, method: &Method, uri: &Uri) -> Option<OjsError> {
        uri.query().filter(|query| !query.is_empty())?;
        match Query::<Vec<(String, String)>>::try_from_uri(uri) {
            Ok(Query(sent)) => self.wrong(path.unwrap_or_default(), method, &sent),
            Err(error) => {
                Some(OjsError::invalid_request("the query", format!("cannot be read: {}", error.body_text())))
            }
        }
    }
}

fn names(operation: &Operation) -> BTreeSet<String> {
    let query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(Parameter { name, parameter_in: ParameterIn::Query, .. }) => Some(name.clone()),
        _ => None,
    };
    operation.parameters.iter().flatten().filter_map(query).collect()
}

/// Refuses parameters that are unknown or given twice.
pub(crate) async fn check(State(known): State<Arc<Described>>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    match known.refused(path, request.method(), request.uri()) {
        Some(refused) => Failure::from(refused).into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_undescribed_or_repeated_parameter_is_refused_by_name() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let paths = [
            ("/jobs", vec![(Method::GET, set(&["state", "page", "per_page"]))]),
            ("/crons", vec![(Method::GET, set(&["enabled"]))]),
        ];
        let described = Described(paths.map(|(path, known)| (path.to_owned(), known)).into());
        let wrong = |method: Method, uri: &str| {
            let uri: Uri = uri.parse().unwrap();
            described.refused(Some(uri.path()), &method, &uri).map(|error| error.message)
        };
        let get = |uri: &str| wrong(Method::GET, uri);
        for accepted in ["/jobs?state=a&page=1", "/jobs?", "/jobs", "/jobs?&&", "/other"] {
            assert_eq!(get(accepted), None, "{accepted}");
        }
        assert_eq!(wrong(Method::HEAD, "/jobs?state=a"), None);
        for (uri, reported) in [
            ("/other?anything", "anything is no parameter of this endpoint, which has none"),
            ("/crons?page=1", "which has `enabled`"),
            ("/crons?enabeld=1", "did you mean `enabled`?"),
            ("/jobs?statee=1", "did you mean `state`?"),
            ("/jobs?limit=1", "did you mean `per_page`?"),
            ("/jobs?limit=1&per_page=1", "limit is no parameter"),
            ("/jobs?colour=1", "which has `page`, `per_page`, `state`"),
            ("/jobs?=1", "is no parameter"),
            ("/jobs?state=a&page=1&state=a", "state is given twice"),
        ] {
            let found = get(uri).unwrap();
            assert!(found.contains(reported), "{uri}: {found}");
        }
        assert!(wrong(Method::POST, "/jobs?state=a").is_some(), "the endpoint of GET has it");
    }
}
