-- Jobs that wait for others, of these. $1: parent_seqs. Differs from SQLite: an array.
SELECT DISTINCT d.parent_seq
FROM delegations AS d
WHERE d.parent_seq = ANY($1) AND d.state = 'open' AND d.call_id IS NOT NULL
