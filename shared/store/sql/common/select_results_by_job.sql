-- Results of jobs.
SELECT t.job_seq, t.result
FROM job_results AS t
WHERE t.job_seq {in: seqs}
