-- Holds engagements by their totals, so that none of them gets a further input. Rows are locked in one order for all.
SELECT c.seq FROM totals AS c WHERE c.seq {in: seqs} ORDER BY c.seq DESC {lock}
