-- The rows of the journal with the checkpoints of unfinished turns.
SELECT v.job_seq, v.stream, v.last_event, v.last_message, v.turn AS turn, v.phase AS phase, v.phases, v.at, v.body
FROM {rows: job_seq, turn}
JOIN jobs AS j ON j.seq = r.job_seq
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = r.job_seq AND v.turn = r.turn AND v.phases > 0
ORDER BY v.job_seq, v.phase
