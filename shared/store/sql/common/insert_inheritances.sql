-- The parts that engagement $1 reads of $2, and of those that $2 reads: turns before $3, messages up to $4.
INSERT INTO inheritances (engagement_seq, source_seq, generation, turn_until, message_until)
SELECT e.seq, p.seq, 1, $3, $4
FROM engagements AS e
JOIN engagements AS p ON p.seq = $2
WHERE e.seq = $1
UNION ALL
SELECT e.seq, i.source_seq, i.generation + 1, CASE WHEN i.turn_until < $3 THEN i.turn_until ELSE $3 END,
       CASE WHEN i.message_until < $4 THEN i.message_until ELSE $4 END
FROM engagements AS e
JOIN inheritances AS i ON i.engagement_seq = $2
WHERE e.seq = $1
