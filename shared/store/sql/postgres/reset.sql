-- Empties what holds the data of this server. Agents, keys, buckets of providers, the leader and the writers stay.
-- Deletes, because the tables are small where this is used, and to truncate one takes longer than to delete a few rows.
-- Differs from SQLite: one statement for all tables.
WITH
    of_jobs AS (DELETE FROM jobs),
    of_job_envelopes AS (DELETE FROM job_envelopes),
    of_job_results AS (DELETE FROM job_results),
    of_job_errors AS (DELETE FROM job_errors),
    of_engagements AS (DELETE FROM engagements),
    of_budgets AS (DELETE FROM budgets),
    of_checkpoints AS (DELETE FROM checkpoints),
    of_messages AS (DELETE FROM messages),
    of_tool_calls AS (DELETE FROM tool_calls),
    of_reviews AS (DELETE FROM reviews),
    of_events AS (DELETE FROM events),
    of_saved_states AS (DELETE FROM saved_states),
    of_progress AS (DELETE FROM progress),
    of_queues AS (DELETE FROM queues),
    of_pools AS (DELETE FROM pools),
    of_rate_keys AS (DELETE FROM rate_keys),
    of_crons AS (DELETE FROM crons),
    of_cron_runs AS (DELETE FROM cron_runs),
    of_workflows AS (DELETE FROM workflows),
    of_workflow_steps AS (DELETE FROM workflow_steps),
    of_webhooks AS (DELETE FROM webhooks),
    of_deliveries AS (DELETE FROM deliveries),
    of_event_marks AS (DELETE FROM event_marks),
    of_job_schemas AS (DELETE FROM job_schemas),
    of_workers AS (DELETE FROM workers),
    of_statistics AS (DELETE FROM statistics),
    of_tool_retries AS (DELETE FROM tool_retries),
    of_branches AS (DELETE FROM branches),
    of_breakers AS (DELETE FROM breakers)
SELECT 1 AS done
