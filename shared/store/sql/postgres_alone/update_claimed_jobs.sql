-- Claims jobs in a statement that is a transaction of its own: picks them, takes them, writes the events of plain jobs, and returns each
-- with its engagement, budget and envelope. $1 kind, $2 queues in their order (JSON; `*` is every queue), $3 how many, $4 now,
-- $5 tenant, $6 the features of the worker's runtime (JSON; NULL is any), $7 worker, $8 how long a lease lasts,
-- $9 how the tokens begin, $11 the commit of the events, $12 writer, $13 the name of the transaction. $10 is the place to look from in each queue, as JSON: a
-- priority and a number. Jobs of that priority with this number or a smaller one are not looked at.
-- It takes nothing where a rule could matter that takes more than one look, and the claim is made step by step: `rule` is
-- then 1 for a rule that stays, and 2 for a job that is due, limited or a step of a workflow. One row is returned at least. Rows are looked for one by one, in the order of the index that has them: `EXISTS`
-- lets PostgreSQL read the whole table when it thinks that such rows are many.
WITH asked AS MATERIALIZED (
    SELECT q.name, min(w.at) AS at, q.pool, q.concurrency, q.rate, q.throttle_ms, q.next_at,
           coalesce(($10::jsonb -> q.name ->> 0)::bigint, -2147483649) AS after_priority,
           coalesce(($10::jsonb -> q.name ->> 1)::bigint, 0) AS after_seq
    FROM jsonb_array_elements_text($2::jsonb) WITH ORDINALITY AS w (name, at)
    JOIN queues AS q ON q.name = w.name OR w.name = '*'
    WHERE q.paused = 0
    GROUP BY q.name
),
rules AS MATERIALIZED (
    SELECT coalesce(
               (SELECT 1 FROM asked WHERE pool IS NOT NULL OR coalesce(concurrency, rate, throttle_ms) IS NOT NULL LIMIT 1),
               (SELECT 1 FROM rate_keys WHERE waiting = 1 AND next_at <= $4 LIMIT 1),
               (SELECT 1 FROM tenant_limits WHERE max_concurrency IS NOT NULL LIMIT 1),
               (SELECT 1 FROM budget_rules LIMIT 1),
               (SELECT 2 FROM asked AS a CROSS JOIN LATERAL
                    (SELECT j.seq FROM jobs AS j
                     WHERE j.state IN ('scheduled', 'retryable') AND j.run_at <= $4 AND j.kind = $1 AND j.queue = a.name
                     ORDER BY j.run_at LIMIT 1) AS due LIMIT 1),
               0) AS rule
),
picked AS MATERIALIZED (
    -- Three ranges of one index, in its order, each read as far as it is needed. Entries of the same priority before the place to look
    -- from are walked over in the index alone; those that are more urgent are looked at. `BETWEEN` instead of `=`, or PostgreSQL takes the order of the primary key and reads all jobs from the first.
    SELECT p.seq, p.priority, a.at, a.name, p.limit_key, p.workflow_seq
    FROM (SELECT name, CASE WHEN $2::jsonb ? '*' THEN 0 ELSE at END AS at, after_priority, after_seq
          FROM asked ORDER BY 2, 1) AS a
    CROSS JOIN LATERAL
        (SELECT * FROM (SELECT j.seq, j.priority, j.limit_key, j.workflow_seq FROM jobs AS j
                        WHERE {jobs to claim} AND j.priority > a.after_priority
                        ORDER BY j.priority DESC, j.seq LIMIT $3 FOR UPDATE SKIP LOCKED) AS more_urgent
         UNION ALL
         SELECT * FROM (SELECT j.seq, j.priority, j.limit_key, j.workflow_seq FROM jobs AS j
                        WHERE {jobs to claim} AND j.priority BETWEEN a.after_priority AND a.after_priority AND j.seq > a.after_seq
                        ORDER BY j.priority DESC, j.seq LIMIT $3 FOR UPDATE SKIP LOCKED) AS as_urgent
         UNION ALL
         SELECT * FROM (SELECT j.seq, j.priority, j.limit_key, j.workflow_seq FROM jobs AS j
                        WHERE {jobs to claim} AND j.priority < a.after_priority
                        ORDER BY j.priority DESC, j.seq LIMIT $3 FOR UPDATE SKIP LOCKED) AS less_urgent
         LIMIT $3) AS p
    WHERE (SELECT r.rule FROM rules AS r) = 0
    LIMIT $3
),
ruled AS MATERIALIZED (
    SELECT coalesce((SELECT 2 FROM picked WHERE limit_key IS NOT NULL OR workflow_seq IS NOT NULL LIMIT 1), r.rule) AS rule
    FROM rules AS r
),
taken AS (
    UPDATE jobs AS j
    SET state            = 'active',
        attempt          = j.attempt + 1,
        started_at       = coalesce(j.started_at, $4),
        claimed_at       = $4,
        worker_id        = $7,
        lease_token      = $9 || '-' || j.seq,
        lease_ms         = CASE WHEN $1 = 'plain' THEN coalesce(j.visibility_ms, $8) ELSE $8 END,
        lease_expires_at = $4 + CASE WHEN $1 = 'plain' THEN coalesce(j.visibility_ms, $8) ELSE $8 END,
        events           = j.events + 1
    FROM picked AS p
    WHERE j.seq = p.seq AND (SELECT r.rule FROM ruled AS r) = 0
    RETURNING p.at, p.name, j.*
),
started AS (
    -- The body is what engine/journal makes of this one event. The first write of an agent's turn also writes the start of its job.
    INSERT INTO journal (commit_id, stream, last_event, events, job_seq, turn, names, at, body)
    SELECT $11, t.stream, t.events, 1, t.seq, 0, 'job.started', $4,
           '[{"event":{"data":' || json_build_object('attempt', t.attempt, 'worker_id', $7::text)::text || '}}]'
    FROM taken AS t
    WHERE t.engagement_seq IS NULL
    RETURNING 1
),
committed AS (
    -- Runs when the rest has run, so its place is behind that of every commit that this one has waited for.
    INSERT INTO new_commits (id)
    SELECT $11 WHERE EXISTS (SELECT 1 FROM started)
    RETURNING 1
),
mark AS (
    UPDATE writers SET last_commit = $13 WHERE name = $12 AND EXISTS (SELECT 1 FROM taken) RETURNING 1
)
-- A claim that takes jobs and leaves no mark fails: its outcome was already looked up, and found not committed.
-- A claim of agents does not wait for the disk: the first write of a turn does, before a model or a tool is called, and it
-- flushes what was committed before it. A crash of the server may undo the claim, and its token is good for nothing then.
SELECT CAST(r.rule AS BIGINT)
       + (SELECT CASE WHEN $1 = 'plain' OR set_config('synchronous_commit', 'off', true) = 'off' THEN 0 END)
       + coalesce(CAST(nullif('rows of w0 ' || (SELECT count(*) FROM mark),
                              'rows of w0 ' || (SELECT count(*) FROM (SELECT 1 FROM taken LIMIT 1) AS one)) AS BIGINT), 0) AS rule,
       t.seq, t.id, t.job_type, t.queue, t.state, t.priority, t.attempt, t.failures, t.lapses, t.created_at, t.run_at, t.started_at, t.ended_at, t.expires_at, t.timeout_ms, t.engagement_seq, t.stream, t.position, t.reserved, t.tokens_used, t.events, t.worker_id, t.lease_token, t.lease_expires_at, t.retry_delay_ms, t.claimed_at, t.tenant, t.visibility_ms, t.lease_ms, t.limit_key, t.workflow_seq, t.workflow_step, t.held, t.dead_letter, t.runtime_tags,
       v.job_seq, v.retry, v.args, v.meta, v.options, v.extra,
       e.seq AS e_seq, e.id AS e_id, e.agent_name AS e_agent_name, e.digest AS e_digest, e.user_id AS e_user_id, e.user_email AS e_user_email, e.started_at AS e_started_at, e.budget_seq AS e_budget_seq, c.turns AS e_turns, c.events AS e_events, c.messages AS e_messages, c.writes AS e_writes, c.turn AS e_turn, c.phase AS e_phase, e.depth AS e_depth, e.parent_seq AS e_parent_seq, c.children AS e_children, c.inputs AS e_inputs, e.limited_by AS e_limited_by,
       b.token_limit AS e_token_limit, b.settled AS e_settled, b.reserved AS e_reserved, b.money_limit AS e_money_limit, b.money_settled AS e_money_settled, b.money_reserved AS e_money_reserved, b.on_exceed AS e_on_exceed, b.warn_at AS e_warn_at, b.tree_jobs AS e_tree_jobs
FROM ruled AS r
LEFT JOIN taken AS t ON true
LEFT JOIN engagements AS e ON e.seq = t.engagement_seq
LEFT JOIN totals AS c ON c.seq = e.seq
LEFT JOIN totals AS b ON b.seq = e.budget_seq
LEFT JOIN job_envelopes AS v ON v.job_seq = t.seq
ORDER BY t.at, t.name, t.priority DESC, t.seq
