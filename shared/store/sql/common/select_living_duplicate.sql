-- The oldest job that has not ended and is like the job $1 in what has to be unique; that key is given even when there is none.
SELECT o.unique_key, (SELECT j.id FROM jobs AS j
                      WHERE j.unique_key = o.unique_key AND j.state IN ('scheduled', 'available', 'pending', 'active', 'retryable')
                        AND j.seq <> o.seq
                      ORDER BY j.created_at LIMIT 1) AS id
FROM jobs AS o
WHERE o.seq = $1 AND o.unique_key IS NOT NULL
