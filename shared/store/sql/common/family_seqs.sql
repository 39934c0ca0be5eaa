-- The numbers of the jobs that work for job $1 or for one of these, and its own.
WITH RECURSIVE kin (job_seq) AS (
    SELECT j.seq FROM jobs AS j WHERE j.id = $1
    UNION
    SELECT d.job_seq FROM kin AS k JOIN delegations AS d ON d.parent_seq = k.job_seq)
SELECT k.job_seq FROM kin AS k
