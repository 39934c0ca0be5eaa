-- The costs of jobs: their model calls and their tool calls.
SELECT r.seq AS job_seq, CAST((SELECT coalesce(sum(v.cost), 0) FROM jobs AS j JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq
                WHERE j.seq = r.seq)
          + (SELECT coalesce(sum(t.cost), 0) FROM tool_calls AS t WHERE t.job_seq = r.seq) AS BIGINT) AS cost
FROM {rows: seq}
