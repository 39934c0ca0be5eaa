-- The tool journal of a job, newest first: at most $3 calls before seq $2.
SELECT {columns of call}, t.seq
FROM tool_calls AS t
WHERE t.job_seq = $1 AND t.seq < $2
ORDER BY t.seq DESC
LIMIT $3
