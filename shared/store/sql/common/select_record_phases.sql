-- The phases that the records of engagements have, as numbers: of the engagements after number $1, at most $2 of them. Each has
-- a row at least. `begins` is the first turn that an engagement does not read of others.
SELECT e.seq, e.id, c.writes, c.turn AS end_turn, c.phase AS end_phase,
       coalesce((SELECT max(i.turn_until) FROM inheritances AS i WHERE i.engagement_seq = e.seq), 1) AS begins,
       v.job_seq, v.turn, v.phase, v.phases
FROM (SELECT n.seq, n.id FROM engagements AS n WHERE n.seq > $1 ORDER BY n.seq LIMIT $2) AS e
JOIN totals AS c ON c.seq = e.seq
LEFT JOIN journal AS v ON v.stream = e.seq AND v.phases > 0
ORDER BY e.seq
