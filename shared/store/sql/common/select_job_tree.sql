-- The numbers of jobs, of all that work for one of them, and of the inputs that one of them waits for.
-- The sum keeps a plan that was made on empty tables from reading all jobs with lower numbers.
WITH RECURSIVE tree (job_seq) AS (
    SELECT j.seq FROM jobs AS j WHERE j.id {in: ids}
    UNION
    SELECT d.job_seq FROM tree AS k JOIN delegations AS d ON d.parent_seq = k.job_seq)
SELECT k.job_seq FROM tree AS k
UNION
SELECT o.seq
FROM jobs AS j
JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
WHERE j.id {in: ids} AND o.ended_at IS NULL AND o.seq + 0 < j.seq
