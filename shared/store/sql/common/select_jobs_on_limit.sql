-- Jobs that do not wait when their limit is used up.
SELECT j.seq, j.on_limit FROM jobs AS j WHERE j.seq {in: seqs} AND j.on_limit IS NOT NULL
