//! Further paths of an endpoint.

use crate::api::Shared;
use std::mem;
use utoipa::openapi::RefOr;
use utoipa_axum::router::UtoipaMethodRouter;

/// Returns a route at another path, with as many parameters. In the document its operations have this tag and these ids,
/// in the order get, put, post, delete, patch.
pub(crate) fn alias<const N: usize>(
    (schemas, mut paths, methods): UtoipaMethodRouter<Shared>,
    path: &str,
    tag: &str,
    ids: [&str; N],
) -> UtoipaMethodRouter<Shared> {
    for (first, mut item) in mem::take(&mut paths.paths) {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch];
        for (operation, id) in operations.into_iter().flatten().zip(ids) {
            operation.operation_id = Some(id.to_owned());
            operation.tags = Some(vec![tag.to_owned()]);
            for parameter in operation.parameters.iter_mut().flatten() {
                if let RefOr::T(parameter) = parameter
                    && let Some((_, name)) =
                        names(&first).zip(names(path)).find(|(known, _)| *known == parameter.name)
                {
                    name.clone_into(&mut parameter.name);
                }
            }
        }
        paths.paths.insert(path.to_owned(), item);
    }
    (schemas, paths, methods)
}

/// Returns the names of the parameters of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}
