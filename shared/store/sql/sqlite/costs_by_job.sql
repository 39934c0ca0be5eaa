-- What jobs have cost: their model calls and their tool calls. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT r.value ->> 0 AS job_seq, CAST((SELECT coalesce(sum(v.cost), 0) FROM jobs AS j JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq
                WHERE j.seq = r.value ->> 0)
          + (SELECT coalesce(sum(t.cost), 0) FROM tool_calls AS t WHERE t.job_seq = r.value ->> 0) AS BIGINT) AS cost
FROM json_each($1) AS r
