DELETE FROM
--- delete_agent
-- Removes an agent from the register. $1 name.
agents WHERE name = $1
--- delete_breaker
-- Deletes the breaker $1.
breakers WHERE name = $1
--- delete_breaker_waits
-- Deletes the breakers that jobs waited for.
breaker_waits WHERE job_seq {in: seqs}
--- delete_budget_rule
-- Forgets a shared budget; what was spent stays in the ledger.
budget_rules WHERE name = $1
--- delete_budget_waits
-- Forgets what jobs waited for.
budget_waits WHERE job_seq {in: seqs}
--- delete_cron
-- Deletes the cron entry $2 of tenant $1.
crons WHERE tenant = $1 AND name = $2
--- delete_deliveries_of_webhook
-- Deletes the deliveries of a webhook that is gone.
deliveries WHERE webhook_id = $1
--- delete_errors
-- Deletes the errors of jobs that are pruned.
job_errors WHERE job_seq {in: seqs}
--- delete_freeze
-- Lifts the freeze of scope $1.
freezes WHERE scope = $1
--- delete_idempotency_key
-- Gives back the idempotency key $1 of a push that was refused.
idempotency_keys WHERE name = $1
--- delete_old_breakers
-- Forgets what has not changed since $1.
breakers WHERE changed_at < $1
--- delete_old_shared_budgets
-- Deletes the rows of shared budgets for days before $1.
totals WHERE day >= 0 AND day < $1
--- delete_old_writers
-- Forgets writers whose last commit is older than $1, which is a UUIDv7.
writers WHERE last_commit < $1
--- delete_registered_digests
-- Forgets the definitions with which agent $1 was registered.
registered_digests WHERE name = $1
--- delete_reservations
-- Reservations that are settled or given back.
reservations WHERE job_seq {in: seqs}
--- delete_saved_state
-- Forgets a saved state.
saved_states WHERE job_seq = $1
--- delete_schema
-- Removes version $2 of the schema of job type $1.
job_schemas WHERE job_type = $1 AND version = $2
--- delete_silent_workers
-- Forgets workers that were last seen before $1.
workers WHERE seen_at < $1
--- delete_tenant_limits
-- Deletes the limits of tenant $1.
tenant_limits WHERE tenant = $1
--- delete_unused_artifact_contents
-- Deletes contents that no artifact uses. A content that a concurrent transaction has just used is looked at again.
artifact_contents WHERE uses = 0
--- delete_webhook
-- Deletes webhook $1, if it is tenant $2's (NULL: any tenant's).
webhooks WHERE id = $1 AND ($2 IS NULL OR tenant = $2)
--- delete_worker
-- Takes a worker off the list.
workers WHERE name = $1 AND instance = $2
--- delete_workflow_steps
-- Deletes the steps of workflows.
workflow_steps WHERE workflow_seq {in: workflow_seqs}
--- delete_workflows
-- Deletes workflows.
workflows WHERE seq {in: seqs}
