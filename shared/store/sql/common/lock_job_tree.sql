-- Holds jobs, those that work for others before the others, and inputs of one engagement in the order in which they
-- came: in this order they end.
SELECT j.seq
FROM jobs AS j
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
WHERE j.seq {in: seqs}
ORDER BY coalesce(e.depth, 0) DESC, j.seq
{lock of j}
