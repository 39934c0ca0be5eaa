//! Components: their fields, and the rules over several of them.

use super::{AGENT, errors, rules, warnings, with};

/// A component as a document of its own.
fn document(fields: &str) -> String {
    format!("id: x\nname: x\nagentspec_version: 26.3.1\n{fields}\n")
}

/// AS-01, AS-02, AS-03, AS-04, AS-05, AS-06, AS-07: what is missing, wrong or unknown has its place.
#[test]
fn the_fields_of_a_component_are_checked() {
    let changed = |old: &str, new: &str| errors(&with(AGENT, old, new));
    assert_eq!(changed("component_type: Agent", "component_type: Agents"), ["AS-01@1:17"]);
    assert_eq!(changed("component_type: Agent", "component_type: [Agent]"), ["AS-01@1:17"]);
    assert_eq!(changed("component_type: Vllm", "type: Vllm"), ["AS-01@4:13"]);
    let plugin = "component_type: MyNode, component_plugin_name: MyPlugin, component_plugin_version: '1'";
    assert_eq!(changed("component_type: VllmConfig", plugin), ["AS-02@4:30"]);
    assert_eq!(changed("component_type: Agent", "component_type: AgenticComponent"), ["AS-03@1:17"]);
    assert_eq!(changed("name: desk\n", ""), ["AS-04@1:1"]);
    assert_eq!(changed("name: desk", "name: 7"), ["AS-04@3:7"]);
    assert_eq!(changed("name: desk", "name: desk\nmetadata: [1]"), ["AS-04@1:1"]);
    assert_eq!(changed("name: desk", "name: desk\ndescription: 1"), ["AS-04@4:14"]);
    assert_eq!(changed("system_prompt: You help {{who}}.\n", ""), ["AS-05@1:1"]);
    assert_eq!(changed("model_id: m, ", ""), ["AS-05@4:13"]);
    assert_eq!(changed("model_id: m", "model_id: 1"), ["AS-06@4:72"]);
    assert_eq!(changed("model_id: m", "model_id: null"), ["AS-06@4:72"]);
    assert_eq!(changed("name: desk", "name: desk\ntools: {}"), ["AS-06@4:8"]);
    assert_eq!(changed("name: desk", "name: desk\nhuman_in_the_loop: maybe"), ["AS-10@1:1", "AS-06@4:20"]);
    let misspelt = with(AGENT, "name: desk", "name: desk\nhuman_in_loop: false");
    assert_eq!((rules(&misspelt), warnings(&misspelt)), (vec![], vec!["AS-07@4:1".to_owned()]));
}

/// AS-15: a place takes components of one kind.
#[test]
fn a_place_takes_components_of_one_kind() {
    let changed = |old: &str, new: &str| errors(&with(AGENT, old, new));
    let tool = "llm_config: {component_type: ServerTool, id: t, name: t}\nold: ";
    assert_eq!(changed("llm_config: ", tool)[..1], ["AS-15@4:13"]);
    assert_eq!(changed("name: desk", "name: desk\ntools: [web]"), ["AS-15@4:9"]);
    let toolbox = "name: desk\ntools: [{component_type: MCPToolBox, id: b, name: b, client_transport: {component_type: SSETransport, id: s, name: s, url: http://m.example}}]";
    assert_eq!(changed("name: desk", toolbox), ["AS-15@4:9"]);
}

/// AS-53: a model calls a tool by its name.
#[test]
fn the_tools_of_an_agent_have_names_of_their_own() {
    let tools = "name: desk\ntools: [{component_type: ServerTool, id: t, name: look up}, {component_type: ClientTool, id: u, name: look_up}]";
    assert_eq!(errors(&with(AGENT, "name: desk", tools)), ["AS-53@4:8"]);
}

/// AS-54, AS-56: headers are given once, and retries follow a known policy.
#[test]
fn requests_are_checked() {
    let tool = |fields: &str| {
        document(&format!(
            "component_type: RemoteTool\nurl: http://{{{{host}}}}/\nhttp_method: GET\n{fields}"
        ))
    };
    assert_eq!(rules(&tool("")), [""; 0]);
    assert_eq!(errors(&tool("headers: {a: b}\nsensitive_headers: {a: c}")), ["AS-54@7:10"]);
    assert_eq!(errors(&tool("retry_policy: {max_attempts: -1}")), ["AS-56@7:30"]);
    assert_eq!(errors(&tool("retry_policy: {attempts: 1}")), ["AS-56@7:16"]);
    assert_eq!(errors(&tool("retry_policy: {initial_retry_delay: 9}")), ["AS-56@7:15"]);
    assert_eq!(errors(&tool("retry_policy: {jitter: some}")), ["AS-56@7:24"]);
    assert_eq!(rules(&tool("retry_policy: {jitter: null, request_timeout: null}")), [""; 0]);
    // A placeholder of a secret header may be declared, and need not be.
    let secret = "sensitive_headers: {key: 'Bearer {{token}}'}";
    assert_eq!(rules(&tool(secret)), [""; 0]);
    assert_eq!(rules(&tool(&format!("{secret}\ninputs: [{{title: host}}, {{title: token}}]"))), [""; 0]);
    assert_eq!(errors(&tool("inputs: [{title: host}, {title: token}]")), ["AS-23@7:9"]);
    assert_eq!(
        rules(&tool(
            "data: {'{{key}}': ['{{value}}']}\ninputs: [{title: host}, {title: key}, {title: value}]"
        )),
        [""; 0]
    );
}

/// AS-50, AS-51, AS-52: teams have members.
#[test]
fn teams_are_checked() {
    let agent = |id: &str| {
        format!(
            "{{component_type: Agent, id: {id}, name: {id}, system_prompt: 'Be {{{{how}}}}.', llm_config: {{$component_ref: l}}}}"
        )
    };
    let team = |fields: &str| {
        let agents = format!("  a: {}\n  b: {}\n", agent("a"), agent("b"));
        document(&format!(
            "{fields}\n$referenced_components:\n{agents}  l: {{component_type: OpenAiConfig, id: l, name: l, model_id: m}}"
        ))
    };
    let swarm =
        |fields: &str| team(&format!("component_type: Swarm\nfirst_agent: {{$component_ref: a}}\n{fields}"));
    let pair = "[{$component_ref: a}, {$component_ref: b}]";
    assert_eq!(rules(&swarm(&format!("relationships: [{pair}]"))), [""; 0]);
    assert_eq!(errors(&swarm("relationships: []")), ["AS-50@6:16"]);
    assert_eq!(errors(&swarm("relationships: [[{$component_ref: a}]]")), ["AS-06@6:17"]);
    assert_eq!(warnings(&swarm(&format!("relationships: [{pair}, {pair}]"))), ["AS-50@6:16"]);
    assert_eq!(warnings(&swarm(&format!("relationships: [{pair}]\nhandoff: true"))), ["AS-50@7:10"]);
    assert_eq!(errors(&swarm(&format!("relationships: [{pair}]\nhandoff: often"))), ["AS-06@7:10"]);
    let workers = |workers: &str| {
        team(&format!(
            "component_type: ManagerWorkers\ngroup_manager: {{$component_ref: a}}\nworkers: {workers}"
        ))
    };
    assert_eq!(rules(&workers("[{$component_ref: b}]")), [""; 0]);
    assert_eq!(errors(&workers("[]")), ["AS-51@6:10"]);
    assert_eq!(errors(&workers("[{$component_ref: b}, {$component_ref: a}]")), ["AS-51@6:10"]);
    let special = |inputs: &str| {
        team(&format!(
            "component_type: SpecializedAgent\nagent: {{$component_ref: a}}\nagent_specialization_parameters: {{component_type: AgentSpecializationParameters, id: s, name: s, additional_instructions: '{{{{how}}}} {{{{long}}}}', inputs: {inputs}}}"
        ))
    };
    assert_eq!(rules(&special("[{title: how, type: string}, {title: long, type: integer}]")), [""; 0]);
    assert_eq!(
        errors(&special("[{title: how, type: integer}, {title: long, type: integer}]")),
        ["AS-52@6:34"]
    );
}

/// AS-55, AS-57, AS-58: what caches, and what filters.
#[test]
fn transforms_and_filters_are_checked() {
    let llm = "llm: {component_type: OpenAiConfig, id: l, name: l, model_id: m}";
    let conversation = |fields: &str| {
        document(&format!("component_type: ConversationSummarizationTransform\n{llm}\n{fields}"))
    };
    assert_eq!(rules(&conversation("")), [""; 0]);
    assert_eq!(rules(&conversation("max_num_characters: 9000")), [""; 0]);
    assert_eq!(rules(&conversation("max_num_messages: 50\nmax_num_characters: 9000")), ["AS-57"]);
    assert_eq!(rules(&conversation("max_num_messages: null")), ["AS-57"]);
    assert_eq!(errors(&conversation("max_num_messages: 10")), ["AS-57@6:19"]);
    let store = |properties: &str, name: &str| {
        conversation(&format!(
            "cache_collection_name: c\ndatastore: {{component_type: InMemoryCollectionDatastore, id: s, name: s, datastore_schema: {{{name}: {{type: object, properties: {{{properties}}}}}}}}}"
        ))
    };
    let all = "cache_key: {}, cache_content: {}, created_at: {}, last_used_at: {}, prefix_size: {}";
    assert_eq!(rules(&store(all, "c")), [""; 0]);
    assert_eq!(errors(&store(all, "d")), ["AS-57@7:12"]);
    assert_eq!(errors(&store(&with(all, ", prefix_size: {}", ""), "c")), ["AS-57@7:12"]);
    let text = document("component_type: InMemoryCollectionDatastore\ndatastore_schema: {c: {type: string}}");
    assert_eq!(errors(&text), ["AS-58@5:19"]);
    let toolbox = |filter: &str| {
        document(&format!(
            "component_type: MCPToolBox\nclient_transport: {{component_type: StdioTransport, id: t, name: t, command: serve}}\ntool_filter: {filter}"
        ))
    };
    assert_eq!(rules(&toolbox("[find, {component_type: MCPToolSpec, id: s, name: look}]")), [""; 0]);
    let outputs = "[{component_type: MCPToolSpec, id: s, name: look, outputs: [{title: n, type: integer}]}]";
    assert_eq!(errors(&toolbox(outputs)), ["AS-55@6:73"]);
}

/// Every class is read with nothing but its required fields.
#[test]
fn every_component_of_the_language_is_read() {
    let oci = "{component_type: OciClientConfigWithInstancePrincipal, id: c, name: c, service_endpoint: http://o.example}";
    let oracle = "{component_type: MTlsOracleDatabaseConnectionConfig, id: c, name: c, user: {$component_ref: c.user}, password: {$component_ref: c.password}, dsn: {$component_ref: c.dsn}, wallet_location: {$component_ref: c.w}, wallet_password: {$component_ref: c.p}}";
    let postgres = "{component_type: TlsPostgresDatabaseConnectionConfig, id: c, name: c, user: {$component_ref: c.user}, password: {$component_ref: c.password}, url: db.example}";
    let files = "key_file: {$component_ref: k}\ncert_file: {$component_ref: c}\nca_file: {$component_ref: a}";
    let oauth = "auth: {component_type: OAuthConfig, id: o, name: o, redirect_uri: http://r.example, scopes: [a], client: {component_type: OAuthClientConfig, id: p, name: p, type: pre_registered, client_id: {$component_ref: p.client_id}}}";
    let profile = "service_endpoint: http://o.example\nauth_profile: p\nauth_file_location: {$component_ref: x.auth_file_location}";
    for fields in [
        "component_type: LlmConfig\nmodel_id: m".to_owned(),
        "component_type: OllamaConfig\nmodel_id: m\nurl: http://o.example\ndefault_generation_parameters: {top_k: 3}".to_owned(),
        format!("component_type: OpenAiCompatibleConfig\nmodel_id: m\nurl: http://o.example\n{files}"),
        "component_type: GeminiConfig\nmodel_id: m\nauth: {component_type: GeminiAIStudioAuthConfig, id: g, name: g}".to_owned(),
        "component_type: GeminiConfig\nmodel_id: m\nauth: {component_type: GeminiVertexAIAuthConfig, id: g, name: g, credentials: {$component_ref: g.credentials}}".to_owned(),
        format!("component_type: OciGenAiConfig\nmodel_id: m\ncompartment_id: c\nclient_config: {oci}"),
        format!("component_type: OciAgent\nagent_endpoint_id: e\nclient_config: {oci}"),
        format!("component_type: OciClientConfigWithApiKey\n{profile}"),
        format!("component_type: OciClientConfigWithSecurityToken\n{profile}"),
        "component_type: OciClientConfigWithResourcePrincipal\nservice_endpoint: http://o.example".to_owned(),
        format!("component_type: DbmsVectorChainLlmConfig\nmodel_id: m\nprovider: p\nurl: u\nconnection_config: {oracle}"),
        format!("component_type: OracleDatabaseDatastore\ndatastore_schema: {{}}\nconnection_config: {oracle}"),
        format!("component_type: PostgresDatabaseDatastore\ndatastore_schema: {{}}\nconnection_config: {postgres}"),
        "component_type: A2AAgent\nagent_url: http://a.example\nconnection_config: {component_type: A2AConnectionConfig, id: c, name: c}".to_owned(),
        "component_type: BuiltinTool\ntool_type: search\nexecutor_name: [one, two]".to_owned(),
        format!("component_type: MCPTool\nclient_transport: {{component_type: StreamableHTTPTransport, id: h, name: h, url: http://m.example, {oauth}}}"),
        format!("component_type: StreamableHTTPmTLSTransport\nurl: http://m.example\n{files}"),
        format!("component_type: SSEmTLSTransport\nurl: http://m.example\n{files}"),
        "component_type: MessageSummarizationTransform\nllm: {component_type: OpenAiConfig, id: l, name: l, model_id: m}".to_owned(),
    ] {
        let source = document(&fields);
        assert_eq!((errors(&source), warnings(&source)), (vec![], vec![]), "{source}");
        super::read(&source);
    }
}
