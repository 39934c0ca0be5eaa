-- A row when the engagement of job $1 got a further input after it.
SELECT count(*) AS later
FROM jobs AS j
JOIN jobs AS o ON o.engagement_seq = j.engagement_seq AND o.seq > j.seq
WHERE j.seq = $1
