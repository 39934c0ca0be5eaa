-- The job that a branch comes from first; no row for a job that is no branch.
SELECT b.root_seq FROM branches AS b WHERE b.job_seq = $1
