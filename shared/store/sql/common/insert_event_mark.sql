-- Moves the mark of reader $1 of all events from ($2, $3, $4) to ($5, $6, $7). Changes nothing when the mark is at another position.
INSERT INTO event_marks (name, number, stream, seq) VALUES ($1, $5, $6, $7)
ON CONFLICT (name) DO UPDATE SET number = excluded.number, stream = excluded.stream, seq = excluded.seq
WHERE event_marks.number = $2 AND event_marks.stream = $3 AND event_marks.seq = $4
