//! The leadership: of several schedulers, only the holder of the lease on the store's row of leaders acts.
//!
//! The leader's own belief is never enough to act: the store checks the term in the transaction of every duty.

use crate::SchedulerOptions;
use crate::tick::{FALLBACK, Setback};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_domain::Clock;
use turnstone_store::{StoreError, Term, Upkeep};

/// The standing of a scheduler, as far as it knows.
#[derive(Clone, PartialEq, Eq, Debug)]
enum LeaderState {
    /// The store has not answered yet.
    Unknown,
    /// It leads.
    Leads(Term),
    /// Another one leads.
    StandsBy,
}

/// A scheduler's part in the leadership.
pub(crate) struct Leadership {
    upkeep: Arc<dyn Upkeep>,
    clock: Arc<dyn Clock>,
    holder: String,
    term: Duration,
    standing: watch::Sender<LeaderState>,
    /// Until when it does not ask for the leadership, so that another scheduler takes it. Locked during each request for the
    /// leadership and each return of it, so that they do not overtake one another.
    rests_until: Mutex<Option<Instant>>,
}

impl Leadership {
    pub(crate) fn new(upkeep: Arc<dyn Upkeep>, clock: Arc<dyn Clock>, options: &SchedulerOptions) -> Self {
        let standing = watch::Sender::new(LeaderState::Unknown);
        let (holder, term) = (options.holder.clone(), options.term);
        Self { upkeep, clock, holder, term, standing, rests_until: Mutex::default() }
    }

    /// Returns the length of a term.
    pub(crate) fn term(&self) -> Duration {
        self.term
    }

    /// Takes or renews the leadership, once; `None` while another leads, and after [`Leadership::step_down`].
    pub(crate) async fn take(&self) -> Result<Option<Term>, StoreError> {
        let mut rests_until = self.rests_until.lock().await;
        if rests_until.is_some_and(|until| Instant::now() < until) {
            return Ok(None);
        }
        *rests_until = None;
        let lease_ms = i64::try_from(self.term.as_millis()).unwrap_or(i64::MAX);
        let term = self.upkeep.lead(&self.holder, lease_ms, self.clock.now()).await?;
        self.stand(term.clone().map_or(LeaderState::StandsBy, LeaderState::Leads));
        Ok(term)
    }

    /// The store refused this term: another scheduler leads.
    pub(crate) fn lose(&self, term: &Term) {
        // The term may have been followed by a new one of ours in the meantime.
        if matches!(&*self.standing.borrow(), LeaderState::Leads(current) if current.token != term.token) {
            return;
        }
        self.stand(LeaderState::StandsBy);
    }

    /// Returns this term to the store, because the duties of this scheduler fail, and asks for no further one for a moment.
    pub(crate) async fn step_down(&self, term: &Term) {
        let mut rests_until = self.rests_until.lock().await;
        if self.current().is_none_or(|current| current.token != term.token) {
            return;
        }
        // Others ask three times in this time.
        *rests_until = Some(Instant::now() + self.term.min(FALLBACK));
        self.standing.send_replace(LeaderState::StandsBy);
        tracing::warn!(
            holder = self.holder,
            "the duties of this scheduler keep failing, so it resigns; another scheduler may lead, and this one asks again"
        );
        if let Err(error) = self.upkeep.resign(term).await {
            tracing::warn!(%error, "the leadership could not be given back; another scheduler leads when the term has run out");
        }
    }

    /// Waits until this scheduler leads; does not wait when it does.
    pub(crate) async fn begun(&self) -> Term {
        let mut standing = self.standing.subscribe();
        if let Ok(now) = standing.wait_for(|now| matches!(now, LeaderState::Leads(_))).await
            && let LeaderState::Leads(term) = &*now
        {
            return term.clone();
        }
        // Out of reach: the sender lives as long as `self`.
        pending().await
    }

    /// Waits until this term has ended, as far as this scheduler knows.
    pub(crate) async fn ended(&self, term: &Term) {
        let mut standing = self.standing.subscribe();
        let is_this =
            |now: &LeaderState| matches!(now, LeaderState::Leads(current) if current.token == term.token);
        let _ = standing.wait_for(|now| !is_this(now)).await;
    }

    /// Requests the leadership three times per term, as leader or not, until `shutdown`; then it resigns. The call
    /// under way at `shutdown` is waited for, so that no unknown term is left behind.
    pub(crate) async fn hold(&self, shutdown: &CancellationToken) {
        let (mut setback, mut reported) = (Setback::none(), false);
        while !shutdown.is_cancelled() {
            let mut wait = self.term / 3;
            match self.take().await {
                Ok(_) => {
                    if setback.recovered() && std::mem::take(&mut reported) {
                        tracing::info!("the store answers the scheduler again");
                    }
                }
                Err(error) => {
                    let (first, longer) = setback.failed();
                    wait = wait.min(longer);
                    // The leader's duties fail as well, and log it.
                    if first && self.current().is_none() {
                        reported = true;
                        tracing::warn!(%error, "the store does not answer requests for the leadership; the scheduler tries again until it does");
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
        self.resign().await;
    }

    async fn resign(&self) {
        let Some(term) = self.current() else { return };
        match self.upkeep.resign(&term).await {
            Ok(()) => tracing::info!(holder = self.holder, "this scheduler gave the leadership back"),
            Err(error) => {
                tracing::warn!(%error, "the leadership could not be given back; another scheduler leads when the term has run out");
            }
        }
    }

    fn current(&self) -> Option<Term> {
        match &*self.standing.borrow() {
            LeaderState::Leads(term) => Some(term.clone()),
            LeaderState::Unknown | LeaderState::StandsBy => None,
        }
    }

    /// Sets the standing, and logs it when it has changed.
    fn stand(&self, standing: LeaderState) {
        let before = self.standing.send_replace(standing.clone());
        let holder = &self.holder;
        match (before, standing) {
            (LeaderState::Leads(_), LeaderState::Leads(_))
            | (LeaderState::StandsBy, LeaderState::StandsBy) => {}
            (_, LeaderState::Leads(_)) => tracing::info!(holder, "this scheduler leads now"),
            (LeaderState::Leads(_), _) => {
                tracing::info!(holder, "another scheduler leads now; this one stands by");
            }
            (_, _) => tracing::info!(holder, "another scheduler leads; this one stands by"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::SchedulerOptions;
    use crate::fake::{BEGIN, Bench, StoreCall};

    /// Returns true if this is a call of a duty by `who`.
    fn acts(requested: &StoreCall, who: &str) -> bool {
        requested.who == who && !["lead", "resign"].contains(&requested.what)
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_schedulers_one_acts() {
        let bench = Bench::new((0..100).map(|n| ("promote_due", BEGIN + n * 1_000)).collect());
        let leader = bench.start("a");
        bench.next_that(|requested| acts(requested, "a")).await;
        let standby = bench.start("b");
        let requested = bench.watch(120).await;
        assert!(bench.store.rows().waiting.is_empty(), "the leader has not stopped");
        assert!(requested.iter().any(|requested| acts(requested, "a")));
        assert_eq!(requested.iter().find(|requested| acts(requested, "b")), None);
        leader.end().await;
        standby.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_leader_is_replaced_within_four_thirds_of_its_term() {
        let bench = Bench::new(Vec::new());
        let leader = bench.start("a");
        bench.next_that(|requested| acts(requested, "a")).await;
        let standby = bench.start("b");
        bench.watch(10).await;
        leader.kill().await;
        let died = bench.now();
        let took_over = bench.next_that(|requested| acts(requested, "b")).await.at - died;
        assert!((800..=1_600).contains(&took_over), "{took_over} ms");
        standby.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_ends_in_order_is_replaced_as_soon_as_another_asks() {
        let bench = Bench::new(Vec::new());
        let leader = bench.start("a");
        bench.next_that(|requested| acts(requested, "a")).await;
        let standby = bench.start("b");
        bench.watch(10).await;
        leader.end().await;
        let ended = bench.now();
        let took_over = bench.next_that(|requested| acts(requested, "b")).await.at - ended;
        assert!(took_over <= 400, "{took_over} ms");
        standby.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_overthrown_leader_stands_by_until_it_may_lead_again() {
        let bench = Bench::new(vec![("promote_due", BEGIN + 10_000), ("promote_due", BEGIN + 12_000)]);
        bench.store.rows().overthrown_before = Some("promote_due");
        let running = bench.start("a");
        assert_eq!(bench.next_that(|requested| requested.what == "promote_due").await.at, BEGIN + 10_000);
        // The rival's term lasts five seconds and is not renewed.
        let next = bench.next_that(|requested| acts(requested, "a")).await;
        assert!((BEGIN + 15_000..=BEGIN + 15_400).contains(&next.at), "{next:?}");
        bench.watch(1).await;
        assert!(bench.store.rows().waiting.is_empty());
        running.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_scheduler_of_a_store_leads_at_once_after_a_crash_and_seldom_renews_its_term() {
        let bench = Bench::new(Vec::new());
        for life in 0..2 {
            let running =
                tokio::spawn(bench.scheduler_with(SchedulerOptions::alone()).run(Default::default()));
            let born = bench.now();
            assert_eq!(bench.next_that(|requested| requested.what == "prune").await.at, born, "life {life}");
            let requested = bench.watch(3_000).await;
            let renewed: Vec<i64> = requested
                .iter()
                .filter(|requested| requested.what == "lead")
                .map(|requested| requested.at - born)
                .collect();
            assert_eq!(renewed, [1_200_000, 2_400_000]);
            running.abort();
            let _ = running.await;
            bench.rest().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_whose_duties_fail_for_two_terms_resigns() {
        let bench = Bench::new(vec![("promote_due", BEGIN)]);
        // The pauses between them grow: the sixth failure comes 3.1 s after the first.
        bench.store.rows().failing = vec!["promote_due"; 6];
        let leader = bench.start("a");
        bench.next_that(|requested| acts(requested, "a")).await;
        let standby = bench.start("b");
        let resigned = bench.next_that(|requested| requested.what == "resign").await;
        assert!(resigned.who == "a" && resigned.at - BEGIN >= 2_400, "{resigned:?}");
        let promoted = bench.next_that(|requested| requested.what == "promote_due").await;
        assert!(promoted.who == "b" && promoted.at - resigned.at <= 800, "{promoted:?}");
        // The former leader may lead again.
        standby.end().await;
        bench.next_that(|requested| acts(requested, "a")).await;
        leader.end().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_keeps_polling_a_failing_store() {
        let bench = Bench::new(Vec::new());
        bench.store.rows().failing = vec!["lead"; 5];
        let running = bench.start("a");
        for _ in 0..6 {
            bench.next_that(|requested| requested.what == "lead").await;
        }
        assert_eq!(bench.next().await.what, "next_due");
        running.end().await;
    }
}
