//! Demands of a manifest that this version does not support.

use super::{MANIFEST, errors, warnings};

/// A demand for safety or security is never accepted without effect.
#[test]
fn what_cannot_be_enforced_is_refused() {
    for (rest, rule) in [
        ("constraints: {performance: {maxConcurrentRequests: 3}}", "OSSA-constraints@6:54"),
        ("safety: {pii_detection: {types: [email, name]}}", "OSSA-safety@6:43"),
        ("safety: {guardrails: {max_tool_calls: 3}}", "OSSA-safety@6:41"),
        ("safety: {guardrails: {policies: [{name: polite}]}}", "OSSA-safety@6:35"),
        ("compliance: {profiles: [soc2-type2]}", "OSSA-security@6:15"),
        ("triggers: [{type: schedule}]", "OSSA-spec@6:13"),
        ("safety: {rate_limiting: {requests_per_minute: 3}}", "OSSA-safety@6:27"),
        ("safety: {human_in_loop: {triggers: [user_request]}}", "OSSA-safety@6:39"),
        ("safety: {human_in_loop: {triggers: [high_risk_action, low_confidence]}}", "OSSA-safety@6:57"),
        ("security: {authentication: {required: true}}", "OSSA-security@6:30"),
        ("security: {audit: {enabled: true, retention_days: 3}}", "OSSA-security@6:53"),
        ("state: {storage: {encryption: {enabled: true}}}", "OSSA-state@6:33"),
    ] {
        assert_eq!(errors(&format!("{MANIFEST}  {rest}\n"), None), [rule], "{rest}");
    }
    for accepted in [
        "safety: {rate_limiting: {enabled: false, requests_per_minute: 3}}",
        "security: {audit: {enabled: true, pii_redaction: true}}",
    ] {
        assert_eq!(errors(&format!("{MANIFEST}  {accepted}\n"), None), Vec::<String>::new(), "{accepted}");
    }
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for (rest, rule) in [
        ("prompts: {system: {template: prompts/desk.md}}", "OSSA-prompts@6:32"),
        ("autonomy: {allowed_actions: []}", "OSSA-autonomy@6:31"),
        ("autonomy: {level: supervised}", "OSSA-autonomy@6:21"),
        ("constraints: {performance: {maxLatencySeconds: 3}}", "OSSA-constraints@6:50"),
        ("reasoning: {strategy: cot}", "OSSA-reasoning@6:25"),
        ("reasoning: {max_depth: 3}", "OSSA-reasoning@6:26"),
        ("observability: {tracing: {exporter: jaeger}}", "OSSA-observability@6:29"),
        ("observability: {logging: {level: debug}}", "OSSA-observability@6:29"),
        ("observability: {metrics: {enabled: false}}", "OSSA-observability@6:29"),
        ("messaging: {publishes: [a]}", "OSSA-spec@6:14"),
        ("delegation: {enabled: true}", "OSSA-collaboration@6:15"),
        ("tools: [{type: http, name: find, health_check: {enabled: true}}]", "OSSA-tools@6:50"),
        ("reliability: {fallback: {strategy: none}}", "OSSA-reliability@6:27"),
        (
            "tools: [{type: http, name: a, capabilities: [{name: find, caching: {ttl_seconds: 3}}]}]",
            "OSSA-tools@6:70",
        ),
        ("tools: [{type: http, name: find, auth: {type: bearer}}]", "OSSA-tools@6:42"),
        ("something_else: 1", "OSSA-spec@6:3"),
    ] {
        assert_eq!(warnings(&format!("{MANIFEST}  {rest}\n")), [rule], "{rest}");
        assert_eq!(errors(&format!("{MANIFEST}  {rest}\n"), None), Vec::<String>::new(), "{rest}");
    }
    for quiet in [
        "safety: {pii_detection: {enabled: false}}",
        "autonomy: {approval_required: false, blocked_actions: []}",
        "autonomy: {level: supervised, approval_required: true}",
        "tools: [{type: http, name: find, approval_required: true}]",
        "safety: {human_in_loop: {triggers: [high_risk_action, policy_violation]}}",
        "observability: {tracing: {enabled: true}}",
        "collaboration: {mode: standalone, delegation: {max_depth: 2}}",
        "reasoning: {strategy: react, max_steps: 3}",
        "identity: {instance_id: {}, interaction_id: {}, propagation: {trace_context: b3}}",
        "safety: {guardrails: {max_execution_time_seconds: 30}}",
        "safety: {pii_detection: {enabled: true}, content_filtering: {action: warn}}",
        "security: {output_filtering: true}",
        "prompts: {system: {template: 'Be {{tone}}.', variables: {tone: kind}}}",
        "state: {mode: persistent, isolation_level: read_committed, ttl: 60}",
    ] {
        assert_eq!(warnings(&format!("{MANIFEST}  {quiet}\n")), Vec::<String>::new(), "{quiet}");
    }
}
