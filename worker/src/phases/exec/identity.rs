//! The identity of a call (OAS-25, OAS-26, OAS-27). Its credentials are fetched right before the call, used
//! in it, and dropped with it. They appear in no prompt, event, journal or log.

use super::remote_calls;
use crate::state::{Claimed, Secured, TurnHistory};
use crate::tool::identity::{Identity, PeerRequest, headers};
use crate::tool::{Tool, Transport};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use turnstone_domain::CallId;
use turnstone_domain::agent::credential::{Acting, Credential, Owner, acting};
use turnstone_domain::agent::{AgentFormat, Capability};
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;

/// Returns the refusal of a call whose identity is not available. Only OpenAgentSpec defines the identity of
/// calls.
pub fn refusal(claimed: &Claimed, capability: &Capability, tool: &dyn Tool) -> Option<ToolOutcome> {
    let refused = |text: String| Some(ToolOutcome::refused(FailureKind::Policy.code(), text));
    if tool.tokens().is_some() {
        let most = i64::from(claimed.agent.limits.max_delegation_depth);
        let depth = claimed.depth + 1;
        let text = format!(
            "`{}` was not asked: it would be {depth} deep, and this agent may delegate to a depth of {most}",
            capability.name
        );
        return (depth > most).then(|| ToolOutcome::refused(FailureKind::DelegationDepth.code(), text));
    }
    if claimed.agent.format != AgentFormat::OpenAgentSpec {
        return None;
    }
    if tool.asks_user() {
        // Any user is allowed, because the user is the one who answers.
        return None;
    }
    match acting(capability, &claimed.engagement.user) {
        Err(why) => refused(why),
        Ok(Acting::Static(name)) if !tool.takes_credentials() => {
            refused(format!("`{}` takes no credentials, so it cannot be called as {name}", capability.name))
        }
        Ok(_) => None,
    }
}

/// The part of a call that a remote agent receives.
#[derive(Clone, Copy)]
pub struct RemotePart<'a> {
    /// The call.
    pub call: &'a CallId,
    /// The tokens that it may spend.
    pub set_aside: i64,
    /// The handle of its work, when it was called before.
    pub handle: Option<&'a Value>,
}

/// Returns the identity of a call, and the request for a remote agent.
///
/// # Errors
/// The outcome for the model when the credentials are missing.
pub async fn of(
    claimed: &Claimed,
    past: &TurnHistory,
    _: Secured<'_>,
    tool: &dyn Tool,
    capability: &Capability,
    remote: RemotePart<'_>,
) -> Result<Identity, ToolOutcome> {
    let user = &claimed.engagement.user;
    if tool.tokens().is_some() {
        // The end user is the same on every server (agents brief §1.3).
        let peer_request = PeerRequest {
            depth: claimed.depth + 1,
            token_budget: remote.set_aside,
            user: user.is_known().then(|| user.clone()),
            tokens_used: AtomicI64::new(0),
            handle: remote.handle.cloned(),
            answers: remote_calls::answers(past, remote.call),
        };
        return Ok(Identity { peer_request: Some(Arc::new(peer_request)), ..Identity::default() });
    }
    if claimed.agent.format != AgentFormat::OpenAgentSpec {
        return Ok(Identity::default());
    }
    let acting = acting(capability, user).map_err(refused)?;
    if !tool.takes_credentials() {
        // An MCP server has credentials of its own; it receives the user for whom it works (OAS-25).
        let takes_user = tool.transport() == Transport::Mcp && matches!(acting, Acting::User);
        return Ok(Identity { user: takes_user.then(|| user.clone()), ..Identity::default() });
    }
    let owner = match &acting {
        Acting::Anonymous => return Ok(Identity::default()),
        // Two tenants may have users with the same id, because the client chooses the id.
        Acting::User => {
            let tenant = claimed.job.meta.get("tenant_id").and_then(|tenant| tenant.parse::<String>().ok());
            Owner::end_user(tenant.as_deref(), &user.id)
        }
        Acting::Static(name) => Owner::Static(name.clone()),
    };
    let kept = match &claimed.deps.credentials {
        None => Vec::new(),
        Some(keeper) => keeper.of_call(&owner, &tool.spec().name).await.map_err(|error| {
            tracing::warn!(%error, "credentials cannot be read");
            let text = format!("the credentials for `{}` could not be read; try again", capability.name);
            ToolOutcome::failed(FailureKind::Tool.code(), text)
        })?,
    };
    if kept.is_empty() && matches!(acting, Acting::Static(_)) {
        let text = format!("no credentials of {owner} are kept for `{}`", tool.spec().name);
        return Err(refused(format!(
            "{text}; `turnstone credential set {owner} {}` adds them",
            tool.spec().name
        )));
    }
    let named = |name: &str, credential: &Credential| claimed.deps.toolbox.secret(name, tool, credential);
    let credentials = headers(&kept, named).map_err(refused)?;
    let user = matches!(acting, Acting::User).then(|| user.clone());
    Ok(Identity { user, credentials, peer_request: None })
}

fn refused(why: String) -> ToolOutcome {
    ToolOutcome::refused(FailureKind::Policy.code(), why)
}
