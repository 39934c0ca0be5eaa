-- How long the payloads of the jobs are that wait in a queue.
SELECT CAST(coalesce(sum(length(v.args) + length(v.meta) + length(v.options) + length(v.extra)), 0) AS BIGINT) AS bytes
FROM jobs AS j
JOIN job_envelopes AS v ON v.job_seq = j.seq
WHERE j.state IN ('available', 'scheduled', 'retryable') AND j.queue = $1
