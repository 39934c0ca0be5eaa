-- Results.
INSERT INTO job_results {values: job_seq, result}
