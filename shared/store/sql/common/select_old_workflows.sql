-- Workflows that ended before $1 and whose jobs are gone.
SELECT w.seq FROM workflows AS w
WHERE w.ended_at < $1 AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.workflow_seq = w.seq)
ORDER BY w.ended_at
LIMIT $2
