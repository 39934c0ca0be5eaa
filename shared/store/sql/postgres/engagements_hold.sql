-- Holds engagements, so that none of them gets a further input. $1 seqs. Differs from SQLite: an array, and the rows are locked.
SELECT e.seq FROM engagements AS e WHERE e.seq = ANY($1) ORDER BY e.seq FOR UPDATE
