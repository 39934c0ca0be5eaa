//! `turnstone budget`: limits and spending.

mod change;
pub mod cost;
mod list;
mod set;
mod show;

pub use change::raise_command;

use super::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone budget`.
#[derive(Debug, Subcommand)]
pub enum BudgetCommand {
    /// List the budgets that engagements share, with the rest of today
    #[command(visible_alias = "ls")]
    List,
    /// Show a budget, day by day
    Show(ShowArgs),
    /// Make a budget, or change its limits
    Set(set::SetArgs),
    /// Raise a budget; jobs that wait for it continue
    Raise(change::RaiseArgs),
    /// Forget budgets, so that they no longer limit anything
    Delete(NamesArgs),
    /// Show the spending by day, tenant and model, or the cost of an engagement
    Cost(cost::CostArgs),
}

/// `turnstone budget show`.
#[derive(Clone, Debug, Args)]
pub struct ShowArgs {
    /// fleet, tenant/NAME, agent/NAME, model/PROVIDER/MODEL, or parts together in this order
    pub name: String,
    /// How many days, today included
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub days: u32,
}

/// Names of budgets.
#[derive(Clone, Debug, Args)]
pub struct NamesArgs {
    /// The budgets
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: BudgetCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        BudgetCommand::List => list::run(session).await,
        BudgetCommand::Show(args) => show::run(&args, session).await,
        BudgetCommand::Set(args) => set::run(&args, session).await,
        BudgetCommand::Raise(args) => change::raise(&args, session).await,
        BudgetCommand::Delete(args) => change::delete(&args.names, session).await,
        BudgetCommand::Cost(args) => cost::run(&args, session).await,
    }
}
