//! One engagement of a thousand turns, whose worker is killed in the middle.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, now};
use crate::stage::Stage;
use std::path::Path;
use turnstone_benches::disk;
use turnstone_benches::jobs::agent_job;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{Capability, Limits};

/// The model asks for the tool in every turn.
const SCRIPT: &str =
    "rules:\n  - answer: {tool_calls: [{name: clock, arguments: {}}], usage: {input: 10, output: 1}}\n";
const SETTINGS: &str =
    "[providers.bench]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_model = 'm'\n";
const LEASE: &str = "1500ms";
const TURNS: &str = "SELECT turns FROM totals";

/// Turns between which an early and a late stretch lie, and where the worker is killed.
struct Marks {
    early: [i64; 2],
    killed: i64,
    late: [i64; 2],
    last: u32,
}

/// The state after a turn.
struct Sample {
    turn: i64,
    size: f64,
    written: f64,
    rows: Option<(f64, f64)>,
}

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let marks = match pace.trial {
        true => Marks { early: [2, 8], killed: 16, late: [24, 30], last: 36 },
        false => Marks { early: [10, 100], killed: 500, late: [900, 990], last: 1_000 },
    };
    let mut figures = Vec::new();
    for postgres in Stage::EACH {
        figures.extend(on(&Stage::start(postgres).await, &marks).await);
    }
    figures
}

async fn on(stage: &Stage, marks: &Marks) -> Vec<Figure> {
    let disk = disk::watch(Path::new(".")).await.expect("the current directory can be written");
    let agent = AgentDefinition {
        name: "bench.long".to_owned(),
        capabilities: vec![Capability::named("clock")],
        limits: Limits { max_turns: marks.last, ..Limits::default() },
        ..AgentDefinition::default()
    };
    stage.push(vec![agent_job(agent, "Go on.")]).await;
    let mut first = stage.worker("first", 1, LEASE, SETTINGS, SCRIPT).await;
    let early = [sample(stage, &first, marks.early[0]).await, sample(stage, &first, marks.early[1]).await];
    stage.at_least(TURNS, marks.killed).await;
    let killed = now();
    first.kill().await;
    let second = stage.worker("second", 1, LEASE, SETTINGS, SCRIPT).await;
    let late = [sample(stage, &second, marks.late[0]).await, sample(stage, &second, marks.late[1]).await];
    stage.at_least("SELECT count(*) FROM jobs WHERE ended_at IS NOT NULL", 1).await;

    let name = |what: &str| format!("{}: {what}", stage.name());
    let compared = |what: &str, unit, [early, late]: [f64; 2]| {
        let figure = Figure::of(name(&format!("{what}, late")), unit, vec![late]).after(early);
        figure.aiming("at most 1.2 times the early one", |_| late <= early * 1.2)
    };
    let time = [per_turn_ms(stage, marks.early).await, per_turn_ms(stage, marks.late).await];
    let per_turn = |of: &dyn Fn(&Sample) -> f64| {
        [&early, &late].map(|[from, to]| (of(to) - of(from)) / (to.turn - from.turn) as f64)
    };
    let mut figures = vec![
        compared("time of a turn", "ms", time),
        Figure::of(
            name("time of a late turn, in waits for the disk"),
            "fdatasync",
            vec![time[1] * disk.fdatasync_per_s / 1e3],
        ),
        compared("written for a turn", "bytes", per_turn(&|sample| sample.written)),
        compared("storage of a turn", "bytes", per_turn(&|sample| sample.size)),
        compared(
            "text in the rows of a turn",
            "bytes",
            [stored(stage, marks.early).await, stored(stage, marks.late).await],
        ),
    ];
    if early[0].rows.is_some() {
        figures.push(compared(
            "rows read for a turn",
            "rows",
            per_turn(&|s| s.rows.map_or(0.0, |rows| rows.0)),
        ));
        figures.push(compared(
            "rows written for a turn",
            "rows",
            per_turn(&|s| s.rows.map_or(0.0, |rows| rows.1)),
        ));
    }
    let (claimed, resumed) = resumed(stage, killed).await;
    let least = |figure: &Figure| figure.high <= 1_000.0;
    let resume =
        Figure::of(name("after SIGKILL, from the claim to the next phase"), "ms", vec![resumed - claimed]);
    figures.push(resume.aiming("at most 1 s", least));
    let what = match stage {
        Stage::File { .. } => "from SIGKILL to the next phase, with the start of the next process",
        Stage::Fleet { .. } => "from SIGKILL to the next phase, with a lease of 1.5 s that has to run out",
    };
    figures.push(Figure::of(name(what), "ms", vec![resumed - killed as f64]));
    figures
}

async fn sample(stage: &Stage, worker: &Process, turn: i64) -> Sample {
    stage.at_least(TURNS, turn).await;
    let turn = stage.place().number(TURNS).await;
    let (size, written, rows) = (stage.size().await, stage.written(worker).await, stage.rows().await);
    Sample { turn, size, written, rows }
}

/// From the last event of one turn to that of another, by the turns between.
async fn per_turn_ms(stage: &Stage, [from, to]: [i64; 2]) -> f64 {
    let place = stage.place();
    let ended =
        async |turn: i64| place.number(&format!("SELECT max(at) FROM journal WHERE turn = {turn}")).await;
    (ended(to).await - ended(from).await) as f64 / (to - from) as f64
}

/// Bytes of text in the rows that a turn left, on average.
pub async fn stored(stage: &Stage, [from, to]: [i64; 2]) -> f64 {
    let of = |table: &str, text: &str| {
        format!("SELECT sum(length({text})) AS bytes FROM {table} WHERE turn >= {from} AND turn < {to}")
    };
    let all =
        [of("journal", "coalesce(body, '') || coalesce(said, '')"), of("tool_calls", "input || outcome")];
    let sql = format!("SELECT CAST(sum(bytes) AS BIGINT) FROM ({}) AS everything", all.join(" UNION ALL "));
    stage.place().number(&sql).await as f64 / (to - from) as f64
}

/// When the job was claimed after the death, and when its next phase was done, in milliseconds of the epoch.
async fn resumed(stage: &Stage, killed: i64) -> (f64, f64) {
    let place = stage.place();
    let first = async |name: &str, after: i64| {
        let sql = format!("SELECT min(at) FROM journal WHERE names LIKE '%{name}%' AND at >= {after}");
        place.number(&sql).await
    };
    let claimed = first("job.started", killed).await;
    (claimed as f64, first("phase.completed", claimed).await as f64)
}
