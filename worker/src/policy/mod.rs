//! The rules of an agent's document and of the configuration. They are evaluated only here.
//!
//! | rule | file |
//! |---|---|
//! | guardrails check inputs, answers, questions and files (OAS-41 … OAS-46) | `guard` |
//! | filters redact or block personal data and harmful content (RS-08, RS-23) | `content_filter` |
//! | restrictions: assertions and reviews of a call and its output (OAS-28 … OAS-36) | `restriction` |
//! | the configuration admits tools, and adds restrictions (`[tool_rules]`) | `tool_rules` |
//! | people, groups and agents that review | `reviewers`, `reviewer` |
//! | questions about the engagement itself | `escalation` |
//! | the values that an agent exposes beside its answer (OAS-47) | `exposes` |

mod content_filter;
pub mod escalation;
pub mod exposes;
pub mod guard;
pub mod restriction;
pub mod reviewer;
pub mod reviewers;
pub mod tool_rules;
