-- Deletes the errors of jobs that are pruned.
DELETE FROM job_errors WHERE job_seq {in: seqs}
