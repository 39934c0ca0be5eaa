-- Noes that a job ended with count no more, because it is tried again. $1: seq. What became of a call that nobody knows the outcome
-- of was decided for good.
UPDATE reviews SET spent = 1 WHERE job_seq = $1 AND state IN ('rejected', 'expired') AND kind <> 'unknown_outcome'
