-- Holds jobs, those that work for others before the others, and inputs of one engagement in the order in which they came: in
-- this order they end. $1: seqs. Differs from SQLite: rows are locked.
SELECT j.seq
FROM jobs AS j
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.seq = ANY($1)
ORDER BY coalesce(e.depth, 0) DESC, j.seq
FOR UPDATE OF j
