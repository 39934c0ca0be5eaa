-- A row when $1 is the id of a branch or of a job.
SELECT b.id FROM branches AS b WHERE b.id = $1
UNION ALL
SELECT j.id FROM jobs AS j WHERE j.id = $1
