-- The numbers of jobs, of all that work for one of them, and of the inputs that one of them waits for. $1: JSON [[id], …].
-- Differs from PostgreSQL: json_each.
WITH RECURSIVE kin (job_seq) AS (
    SELECT j.seq FROM json_each($1) AS r JOIN jobs AS j ON j.id = r.value ->> 0
    UNION
    SELECT d.job_seq FROM kin AS k JOIN delegations AS d ON d.parent_seq = k.job_seq)
SELECT k.job_seq FROM kin AS k
UNION
SELECT o.seq
FROM json_each($1) AS r
JOIN jobs AS j ON j.id = r.value ->> 0
JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
WHERE o.ended_at IS NULL AND o.seq < j.seq
