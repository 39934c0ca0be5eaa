-- The delegations of turn $2 of job $1, in the order in which they were requested.
SELECT d.job_seq, d.call_id, d.agent, d.mode, d.state, d.started_at, d.ended_at, j.id, v.result, f.error, f.attempt, f.at
FROM jobs AS p
JOIN delegations AS d ON d.parent_seq = p.seq
JOIN jobs AS j ON j.seq = d.job_seq
LEFT JOIN job_results AS v ON v.job_seq = j.seq
LEFT JOIN job_errors AS f ON f.job_seq = j.seq
    AND f.failure = (SELECT max(l.failure) FROM job_errors AS l WHERE l.job_seq = j.seq)
WHERE p.id = $1 AND d.turn = $2 AND d.call_id IS NOT NULL
ORDER BY d.job_seq
