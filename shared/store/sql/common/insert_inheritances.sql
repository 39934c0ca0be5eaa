-- Engagement $1 reads the turns of $2 before $3, and those that $2 reads of others.
INSERT INTO inheritances (engagement_seq, source_seq, generation, turn_until)
SELECT e.seq, p.seq, 1, $3
FROM engagements AS e
JOIN engagements AS p ON p.seq = $2
WHERE e.seq = $1
UNION ALL
SELECT e.seq, i.source_seq, i.generation + 1, CASE WHEN i.turn_until < $3 THEN i.turn_until ELSE $3 END
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = $2
WHERE e.seq = $1
