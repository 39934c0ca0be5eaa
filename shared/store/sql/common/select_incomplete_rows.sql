SELECT
--- select_jobs_without_envelope
-- Jobs that have not ended, and dead letters, without what their clients sent. After number $1, at most $2.
j.seq, j.id FROM jobs AS j
WHERE j.seq > $1 AND (j.ended_at IS NULL OR (j.state = 'discarded' AND j.dead_letter = 1))
  AND NOT EXISTS (SELECT 1 FROM job_envelopes AS e WHERE e.job_seq = j.seq)
ORDER BY j.seq
LIMIT $2
--- select_jobs_without_engagement
-- Jobs of an engagement that is not stored. After number $1, at most $2.
j.seq, j.id FROM jobs AS j
WHERE j.seq > $1 AND j.engagement_seq IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq)
ORDER BY j.seq
LIMIT $2
--- select_engagements_without_definition
-- Engagements whose agent is not stored. After number $1, at most $2.
e.seq, e.id FROM engagements AS e
WHERE e.seq > $1 AND NOT EXISTS (SELECT 1 FROM agent_definitions AS d WHERE d.digest = e.digest)
ORDER BY e.seq
LIMIT $2
--- select_engagements_without_totals
-- Engagements without their counters and their budget. After number $1, at most $2.
e.seq, e.id FROM engagements AS e
WHERE e.seq > $1 AND NOT EXISTS (SELECT 1 FROM totals AS t WHERE t.seq = e.seq)
ORDER BY e.seq
LIMIT $2
