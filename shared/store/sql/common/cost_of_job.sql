-- What a job has cost: its model calls and its tool calls.
SELECT CAST((SELECT coalesce(sum(c.cost), 0) FROM checkpoints AS c WHERE c.job_seq = $1)
          + (SELECT coalesce(sum(t.cost), 0) FROM tool_calls AS t WHERE t.job_seq = $1) AS BIGINT) AS cost
