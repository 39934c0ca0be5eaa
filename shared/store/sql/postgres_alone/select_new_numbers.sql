-- Takes a number for each of the jobs that are pushed into queues, for the statements that write them in the same go. A queue
-- with a bound, or with jobs that it refuses, needs more than one look: this fails then, and the push is made step by step.
SELECT array_agg(nextval('jobs_seq') + coalesce(CAST('a rule of ' || q.name AS BIGINT), 0)) AS numbers
FROM unnest($1, $2) AS r (queue, jobs)
CROSS JOIN generate_series(1, r.jobs)
LEFT JOIN queues AS q
       ON q.name = r.queue
      AND (coalesce(q.max_depth, q.max_bytes, q.warn_at) IS NOT NULL OR q.config LIKE '%"attest_policy"%')
