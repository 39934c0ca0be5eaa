-- Jobs that work for job $1 or for one of these, at most $2.
WITH RECURSIVE tree (job_seq, parent_seq, call_id, mode, state) AS (
    SELECT d.job_seq, d.parent_seq, d.call_id, d.mode, d.state
    FROM delegations AS d JOIN jobs AS p ON p.seq = d.parent_seq
    WHERE p.id = $1
    UNION ALL
    SELECT d.job_seq, d.parent_seq, d.call_id, d.mode, d.state
    FROM tree AS k JOIN delegations AS d ON d.parent_seq = k.job_seq)
SELECT j.id, e.id AS engagement_id, e.agent_name, p.id AS parent_id, k.call_id, k.mode, k.state AS delegation,
       j.state, e.depth, c.turns, j.tokens_used
FROM tree AS k
JOIN jobs AS j ON j.seq = k.job_seq
JOIN jobs AS p ON p.seq = k.parent_seq
JOIN engagements AS e ON e.seq = j.engagement_seq
JOIN totals AS c ON c.seq = e.seq
ORDER BY k.job_seq
LIMIT $2
