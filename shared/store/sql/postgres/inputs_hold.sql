-- Holds the inputs of a job's engagement that have not ended and came before it: who ends one of them holds it first, and then
-- the next one. $1 id. Differs from SQLite: rows are locked.
SELECT o.seq
FROM jobs AS j
JOIN jobs AS o ON o.engagement_seq = j.engagement_seq
WHERE j.id = $1 AND o.ended_at IS NULL AND o.seq < j.seq
ORDER BY o.seq
FOR UPDATE OF o
