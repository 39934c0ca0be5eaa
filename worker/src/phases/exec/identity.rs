//! The identity of a call (OAS-25, OAS-26, OAS-27). Its credentials are fetched right before the call, used
//! in it, and dropped with it. They appear in no prompt, event, journal or log.

use crate::state::tools::Callable;
use crate::state::{Claimed, Secured};
use crate::tool::Transport;
use crate::tool::identity::{Identity, PeerRequest, headers};
use std::sync::Arc;
use turnstone_domain::agent::AgentFormat;
use turnstone_domain::agent::credential::{Acting, Credential, Owner, acting};
use turnstone_domain::error::FailureKind;
use turnstone_domain::tool_call::ToolOutcome;

/// Checks that the identity of a call is available. Only OpenAgentSpec defines the identity of calls.
///
/// # Errors
/// The refusal, as the outcome for the model.
pub fn available(claimed: &Claimed, Callable { tool, capability }: &Callable) -> Result<(), ToolOutcome> {
    if tool.tokens().is_some() {
        return match claimed.too_deep(&capability.name) {
            Some(why) => Err(ToolOutcome::refused(FailureKind::DelegationDepth, why)),
            None => Ok(()),
        };
    }
    // Any user may be asked, because the user is the one who answers.
    if claimed.agent.format != AgentFormat::OpenAgentSpec || tool.asks_user() {
        return Ok(());
    }
    match acting(capability, &claimed.engagement.user) {
        Err(why) => Err(refused(why)),
        Ok(Acting::Static(name)) if !tool.takes_credentials() => Err(refused(format!(
            "`{}` takes no credentials, so it cannot be called as {name}",
            capability.name
        ))),
        Ok(_) => Ok(()),
    }
}

/// Returns the identity of a call; `peer_request` is the request for a remote agent.
///
/// # Errors
/// The outcome for the model when the credentials are missing.
pub async fn of(
    claimed: &Claimed,
    _: Secured<'_>,
    Callable { tool, capability }: &Callable,
    peer_request: Option<PeerRequest>,
) -> Result<Identity, ToolOutcome> {
    let user = &claimed.engagement.user;
    if let Some(peer_request) = peer_request {
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
            ToolOutcome::failed(FailureKind::Tool, text)
        })?,
    };
    if kept.is_empty() && matches!(acting, Acting::Static(_)) {
        let text = format!("no credentials of {owner} are kept for `{}`", tool.spec().name);
        return Err(refused(format!(
            "{text}; `turnstone credential set {owner} {}` adds them",
            tool.spec().name
        )));
    }
    let named = |name: &str, credential: &Credential| claimed.deps.toolbox.secret(name, &**tool, credential);
    let credentials = headers(&kept, named).map_err(refused)?;
    let user = matches!(acting, Acting::User).then(|| user.clone());
    Ok(Identity { user, credentials, peer_request: None })
}

fn refused(why: String) -> ToolOutcome {
    ToolOutcome::refused(FailureKind::Policy, why)
}
