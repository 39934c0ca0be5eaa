-- How many other jobs the engagement of job $1 has or had.
SELECT e.inputs - 1 AS others
FROM jobs AS j
JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.id = $1
