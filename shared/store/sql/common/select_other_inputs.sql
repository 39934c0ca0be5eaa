-- How many other jobs the engagement of job $1 has or had.
SELECT c.inputs - 1 AS others
FROM jobs AS j
JOIN totals AS c ON c.seq = j.engagement_seq
WHERE j.id = $1
