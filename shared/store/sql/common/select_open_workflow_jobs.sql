-- Jobs of a workflow that no worker has begun and that have not ended.
SELECT j.id FROM jobs AS j
WHERE j.workflow_seq = $1 AND j.state IN ('available', 'scheduled', 'pending', 'retryable')
ORDER BY j.seq
