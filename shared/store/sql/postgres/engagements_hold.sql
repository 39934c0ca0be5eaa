-- Holds engagements by their totals, so that none of them gets a further input. $1 seqs.
-- Differs from SQLite: an array, and the rows are locked in one order for all.
SELECT c.seq FROM totals AS c WHERE c.seq = ANY($1) ORDER BY c.seq DESC FOR UPDATE
