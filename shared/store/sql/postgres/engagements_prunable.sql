-- What the engagements of streams refer to that may be of no use without them. $1: seqs. Differs from SQLite: an array.
SELECT e.digest, e.budget_seq
FROM engagements AS e
WHERE e.seq = ANY($1)
