//! A wrong configuration ends every command that reads it with exit code 2.

use crate::program::run;
use std::path::Path;

/// A wrong configuration, and the words of its refusal.
const WRONG: [(&str, &str); 28] = [
    ("[worker", "turnstone.toml"),
    ("[wroker]", "did you mean `worker`?"),
    ("[worker]\nslot = 3", "did you mean `slots`?"),
    ("[worker]\nslots = 'many'", "slots"),
    ("[worker]\nslots = 0", "worker.slots"),
    ("[worker]\nqueues = ['No Such']", "worker.queues"),
    ("[server]\nbind = 'nowhere'", "bind"),
    ("[server]\napi_keys = ['env:NO_SUCH_KEY']", "NO_SUCH_KEY"),
    (
        "[server.issuers.x]\nissuer = 'https://a.example'\naudience = []\nfleet = true\nroles = {}",
        "server.issuers.x.audience",
    ),
    ("[server.tls]\ncert = 'no.pem'\nkey = 'no.pem'", "no.pem"),
    ("[client]\nurl = 'nonsense'", "client.url"),
    ("[log]\nfilter = 'a=loudly'", "a=loudly"),
    ("[agents]\ndir = 'nowhere'", "agents.dir"),
    ("[attest]\nkey = 'env:NO_SUCH_KEY'", "attest.key"),
    ("[encryption]\nkey = 'file:no.key'", "encryption.key"),
    ("[models]\ntimeout_ms = 0", "models.timeout_ms"),
    ("[providers.x]\nkind = 'telepathy'", "telepathy"),
    ("[providers.x]\nkind = 'openai'\nbase_url = 'nonsense'", "providers.x"),
    ("[providers.x]\nkind = 'scripted'\nscript = 'no.yaml'", "no.yaml"),
    ("[limits.'unknown/m']\nrequests_per_minute = 1", "unknown"),
    ("[prices.m]\ncurrency = 'USD'\ninput_per_million = 1\noutput_per_million = 1", "prices"),
    ("[budgets.nonsense]\ntokens = 1", "nonsense"),
    ("[tools.x]\ndescription = 'd'\nurl = 'nowhere'", "tools.x"),
    ("[mcp.x]\nurl = 'nowhere'", "mcp.x"),
    ("[tool_policy]\nallowed_commands = ['sh']", "[tool_policy.allowed_commands.sh] with `program"),
    ("[tool_policy.allowed_commands.sh]\nprogram = 'sh'", "write an absolute path"),
    ("[tool_policy.allowed_commands.sh]\nprogram = '/bin/sh'\nenv_names = ['A']", "unknown key `env_names`"),
    ("[remote.agents.x]\nprotocol = 'a2a'\nurl = 'nowhere'", "x"),
];

async fn refused(folder: &Path, arguments: &[&str], env: &[(&str, &str)], words: &str) {
    let ran = run(folder, arguments, env).await;
    let said = ran.stdout.clone() + &ran.stderr;
    assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
    assert!(said.contains(words), "{arguments:?} does not name {words}: {ran:?}");
}

#[tokio::test]
async fn every_wrong_configuration_ends_with_2() {
    let folder = turnstone_tests::scratch::folder();
    let dev = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    for (settings, words) in WRONG {
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        refused(folder.path(), &["config", "check"], &[], words).await;
        // An address on the command line would hide a wrong one.
        let dev = if settings.starts_with("[server]\nbind") { &dev[..3] } else { &dev[..] };
        refused(folder.path(), dev, &[], words).await;
    }
    std::fs::remove_file(folder.path().join("turnstone.toml")).unwrap();
    for file in ["no.toml", "."] {
        refused(folder.path(), &["config", "check", "--config", file], &[], file).await;
    }
    std::fs::write(folder.path().join("file"), "").unwrap();
    refused(folder.path(), &["dev", "--data", "file"], &[], "data directory file").await;
    refused(folder.path(), &["dev", "--data", "data", "--bind", "192.0.2.1:1"], &[], "192.0.2.1:1").await;
}

#[tokio::test]
async fn an_address_of_a_store_that_is_none_ends_with_2() {
    let folder = turnstone_tests::scratch::folder();
    let commands: [&[&str]; 5] =
        [&["api", "--bind", "127.0.0.1:0"], &["scheduler"], &["worker"], &["migrate"], &["config", "check"]];
    for command in commands {
        for url in
            ["sqlite:turnstone.db", "mysql://me@db/t", "db.internal", "postgres://db:port/t", "file:/no/url"]
        {
            let ran = run(folder.path(), command, &[("DATABASE_URL", url)]).await;
            assert_eq!(ran.code, Some(2), "{command:?} with {url}: {ran:?}");
        }
        if command != ["migrate"] {
            let redis = [("DATABASE_URL", "postgres://me@127.0.0.1:1/t"), ("REDIS_URL", "http://nowhere")];
            refused(folder.path(), command, &redis, "redis://host").await;
        }
        if command != ["config", "check"] {
            refused(folder.path(), command, &[], "give DATABASE_URL").await;
        }
    }
}
