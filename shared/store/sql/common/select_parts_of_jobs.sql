-- The parts of jobs beside their rows: the sent job, the result, the state that a worker over HTTP saved, and
-- whether there are failed attempts.
SELECT v.job_seq, v.retry, v.args, v.meta, v.options, v.extra, s.state, s.sequence, s.at,
       (SELECT t.result FROM job_results AS t WHERE t.job_seq = v.job_seq) AS result,
       CASE WHEN EXISTS (SELECT 1 FROM job_errors AS e WHERE e.job_seq = v.job_seq) THEN CAST(1 AS BIGINT) ELSE 0 END AS failed
FROM job_envelopes AS v
LEFT JOIN saved_states AS s ON s.job_seq = v.job_seq
WHERE v.job_seq {in: seqs}
