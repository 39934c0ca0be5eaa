//! The rules over the fields of a component, checked when all of them are read.

mod agents;
mod bounds;
mod flow;
mod flow_data;
mod requests;
pub(super) mod signature;
mod subflows;
mod transforms;

use super::component::Component;
use crate::problem::Problems;

/// So many names are looked at to suggest one.
const MAX_HINTED: usize = 50;

/// Completes a component (what it infers, the version it needs) and checks it.
pub(super) fn settle(component: &mut Component, problems: &mut Problems) {
    component.bound = bounds::of(component);
    if !component.is_whole {
        // The remaining rules would repeat problems that are already reported.
        return;
    }
    signature::settle(component, problems);
    match component.class.name {
        "Flow" => {
            flow::check(component, problems);
            flow_data::check(component, problems);
        }
        "StartNode" | "EndNode" => signature::check_passed_on(component, problems),
        "MapNode" | "ParallelMapNode" => subflows::check_reducers(component, problems),
        "ParallelFlowNode" => subflows::check_parallel(component, problems),
        "CatchExceptionNode" => subflows::check_catch(component, problems),
        "InputMessageNode" => subflows::check_input_message(component, problems),
        "BranchingNode" => subflows::check_branching(component, problems),
        "Agent" => agents::check_tools(component, problems),
        "SpecializedAgent" => agents::check_specialized(component, problems),
        "Swarm" => agents::check_swarm(component, problems),
        "ManagerWorkers" => agents::check_manager(component, problems),
        "MCPToolBox" => agents::check_filter(component, problems),
        "OAuthConfig" | "BuiltinTool" => requests::check_texts(component, problems),
        "MessageSummarizationTransform" | "ConversationSummarizationTransform" => {
            transforms::check(component, problems);
        }
        _ => {}
    }
    requests::check_headers(component, problems);
    requests::check_retries(component, problems);
    if component.class.name.ends_with("Datastore") {
        transforms::check_schema(component, problems);
    }
}
