-- Jobs per state. $1 queue; NULL matches all.
SELECT j.state, count(*) AS jobs FROM jobs AS j WHERE $1 IS NULL OR j.queue = $1 GROUP BY j.state
