-- What the engagements of streams refer to that may be of no use without them.
SELECT e.digest, e.budget_seq
FROM engagements AS e
WHERE e.seq {in: seqs}
