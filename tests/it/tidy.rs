//! Rules of the repository as tests. Each message says what to do.

#[cfg(test)]
#[path = "tidy/agent_protocol_rows.rs"]
mod agent_protocol_rows;
#[path = "tidy/agent_spec_rows.rs"]
mod agent_spec_rows;
#[cfg(test)]
#[path = "tidy/checklist.rs"]
mod checklist;
#[cfg(test)]
#[path = "tidy/code.rs"]
mod code;
#[cfg(test)]
#[path = "tidy/conformance.rs"]
mod conformance;
#[cfg(test)]
#[path = "tidy/deploy.rs"]
mod deploy;
#[cfg(test)]
#[path = "tidy/docs.rs"]
mod docs;
#[cfg(test)]
#[path = "tidy/events_page.rs"]
mod events_page;
#[cfg(test)]
#[path = "tidy/house.rs"]
mod house;
#[cfg(test)]
#[path = "tidy/imports.rs"]
mod imports;
#[cfg(test)]
#[path = "tidy/licences.rs"]
mod licences;
#[cfg(test)]
#[path = "tidy/lines.rs"]
mod lines;
#[cfg(test)]
#[path = "tidy/lint_rules.rs"]
mod lint_rules;
#[cfg(test)]
#[path = "tidy/names.rs"]
mod names;
#[cfg(test)]
#[path = "tidy/oas_rows.rs"]
mod oas_rows;
#[cfg(test)]
#[path = "tidy/ojs_agent_rows.rs"]
mod ojs_agent_rows;
#[path = "tidy/ossa_rows.rs"]
mod ossa_rows;
#[cfg(test)]
#[path = "tidy/prose.rs"]
mod prose;
#[cfg(test)]
#[path = "tidy/secured.rs"]
mod secured;
#[cfg(test)]
#[path = "tidy/sizes.rs"]
mod sizes;
#[cfg(test)]
#[path = "tidy/sql.rs"]
mod sql;
