-- The rows of the journal with the checkpoints of unfinished turns. $1: JSON [[job_seq, turn], …]. Differs from PostgreSQL: json_each.
SELECT v.job_seq, v.stream, v.last_event, v.last_message, v.turn AS turn, v.phase AS phase, v.phases, v.at, v.body
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = r.value ->> 0
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq AND v.turn = r.value ->> 1 AND v.phases > 0
ORDER BY v.job_seq, v.phase
