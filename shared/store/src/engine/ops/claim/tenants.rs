//! Tenants whose active jobs are limited, as one claim uses them (OJS multi-tenancy §8).

use crate::engine::rows::get;
use crate::engine::session::Session;
use crate::engine::statement::{as_json, read};
use crate::{StoreError, sql};
use std::collections::{BTreeSet, HashMap};

/// How many more jobs of each tenant may start, and of which none may.
#[derive(Default)]
pub(super) struct Tenants {
    room: HashMap<String, i64>,
    shut: BTreeSet<String>,
    elsewhere: bool,
}

impl Tenants {
    /// Locks tenants that have a limit, if there are `any`, and counts what is active. Jobs of those that another claim has
    /// in its hands are left to it.
    pub(super) async fn lock(session: &mut Session, any: bool) -> Result<Self, StoreError> {
        let mut tenants = Self::default();
        if !any {
            return Ok(tenants);
        }
        let (action, text) = ("lock tenants", &sql::LOCK_CAPPED_TENANTS);
        let locked = read(session, action, text, &[], |row| get::<String>(row, "tenant")).await?;
        let locked: BTreeSet<String> = locked.into_iter().collect();
        // Counted after the rows are locked: who had them before is seen now.
        let (action, text) = ("count active jobs", &sql::SELECT_ACTIVE_OF_TENANTS);
        let counted = read(session, action, text, &[], |row| {
            let most: i64 = get::<Option<i64>>(row, "max_concurrency")?.unwrap_or(i64::MAX);
            Ok((get::<String>(row, "tenant")?, most.saturating_sub(get(row, "active")?)))
        });
        for (tenant, room) in counted.await? {
            if room > 0 && locked.contains(&tenant) {
                tenants.room.insert(tenant, room);
            } else {
                tenants.elsewhere |= room > 0;
                tenants.shut.insert(tenant);
            }
        }
        Ok(tenants)
    }

    /// Returns true when a concurrent claim held a tenant.
    pub(super) fn busy(&self) -> bool {
        self.elsewhere
    }

    /// Tenants of which no job may start: JSON; `None` when there is none.
    pub(super) fn shut(&self) -> Result<Option<String>, StoreError> {
        if self.shut.is_empty() { Ok(None) } else { as_json(&self.shut).map(Some) }
    }

    /// Returns true when a job of this tenant may start.
    pub(super) fn has_room(&self, tenant: Option<&str>) -> bool {
        tenant.is_none_or(|tenant| !self.shut.contains(tenant))
    }

    /// A job of this tenant starts.
    pub(super) fn take(&mut self, tenant: Option<&str>) {
        let Some((tenant, room)) =
            tenant.and_then(|tenant| self.room.get_mut(tenant).map(|room| (tenant, room)))
        else {
            return;
        };
        *room -= 1;
        if *room == 0 {
            self.shut.insert(tenant.to_owned());
        }
    }
}
