-- Jobs that wait for others, of these.
SELECT DISTINCT d.parent_seq
FROM delegations AS d
WHERE d.parent_seq {in: seqs} AND d.state = 'open' AND d.call_id IS NOT NULL
