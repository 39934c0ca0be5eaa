-- The agents of jobs whose engagements have several inputs.
SELECT d.job_seq, d.digest FROM input_definitions AS d WHERE d.job_seq {in: seqs}
