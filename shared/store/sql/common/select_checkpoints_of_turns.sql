SELECT {columns of checkpoints}
FROM jobs AS j
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = j.seq AND v.phases > 0
--- select_checkpoints_of_turns
-- The rows of the journal with the checkpoints of a job in the turns from $2 up to, but not including, $3: its own
-- and those that it reads of others.
WHERE j.seq = $1 AND v.turn >= $2 AND v.turn < $3
UNION ALL
SELECT {columns of checkpoints}
FROM inheritances AS i
JOIN journal AS v ON v.stream = i.source_seq AND v.job_seq = i.source_seq AND v.phases > 0 AND v.turn < i.turn_until
WHERE i.engagement_seq = $1 AND v.turn >= $2 AND v.turn < $3
ORDER BY turn, phase
--- select_checkpoints_of_phase_of_job
-- The rows of the journal with the checkpoints of phase $4 of a job in the turns from $2 up to, but not including,
-- $3: its own and those that it reads of others.
WHERE j.id = $1 AND v.turn >= $2 AND v.turn < $3 AND v.phase <= $4 AND v.phase + v.phases > $4
UNION ALL
SELECT {columns of checkpoints}
FROM jobs AS j
JOIN inheritances AS i ON i.engagement_seq = j.seq
JOIN journal AS v ON v.stream = i.source_seq AND v.job_seq = i.source_seq AND v.phases > 0 AND v.turn < i.turn_until
WHERE j.id = $1 AND v.turn >= $2 AND v.turn < $3 AND v.phase <= $4 AND v.phase + v.phases > $4
ORDER BY turn
