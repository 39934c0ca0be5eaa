-- Gives a job another retry policy. $1 seq.
UPDATE job_envelopes SET retry = $2 WHERE job_seq = $1
