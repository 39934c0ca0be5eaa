-- The codes of the last errors of jobs with a tag that failed, for good or until their next attempt, the most frequent
-- first. $1 tag, $2 tenant; NULL matches all.
SELECT x.code, count(*) AS jobs
FROM job_tags AS t
JOIN jobs AS j ON j.seq = t.job_seq
JOIN job_errors AS x ON x.job_seq = j.seq
WHERE t.tag = $1 AND ($2 IS NULL OR j.tenant = $2) AND j.state IN ('discarded', 'retryable')
  AND x.failure = (SELECT max(y.failure) FROM job_errors AS y WHERE y.job_seq = j.seq)
GROUP BY x.code
ORDER BY jobs DESC, x.code
