-- The phases that the record of engagement $1 has, as numbers: its own and those that it reads of others. It has a row at least.
SELECT e.seq, e.id, c.writes, c.turn AS end_turn, c.phase AS end_phase, CAST(1 AS BIGINT) AS begins, v.job_seq, v.turn, v.phase, v.phases
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
LEFT JOIN journal AS v ON v.stream = e.seq AND v.phases > 0
WHERE e.id = $1
UNION ALL
SELECT e.seq, e.id, c.writes, c.turn AS end_turn, c.phase AS end_phase, CAST(1 AS BIGINT) AS begins, v.job_seq, v.turn, v.phase, v.phases
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
JOIN inheritances AS i ON i.engagement_seq = e.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.job_seq = i.source_seq AND v.phases > 0 AND v.turn < i.turn_until
WHERE e.id = $1
