-- The rows of the journal with the checkpoints of unfinished turns, and whether there is more to recall than they say (0 or 1).
SELECT v.job_seq, v.stream, v.last_event, v.last_message, v.messages, v.turn AS turn, v.phase AS phase, v.phases, v.at, v.body, v.said,
    CASE WHEN EXISTS (SELECT 1 FROM tool_calls AS t WHERE t.engagement_seq = j.engagement_seq)
           OR EXISTS (SELECT 1 FROM reviews AS w WHERE w.job_seq = j.seq)
           OR EXISTS (SELECT 1 FROM delegations AS d WHERE d.parent_seq = j.seq)
           OR EXISTS (SELECT 1 FROM forks AS f WHERE f.engagement_seq = j.engagement_seq)
           OR EXISTS (SELECT 1 FROM inheritances AS i WHERE i.engagement_seq = j.engagement_seq)
         THEN CAST(1 AS BIGINT) ELSE 0 END AS more
FROM {rows: job_seq, turn}
JOIN jobs AS j ON j.seq = r.job_seq
JOIN journal AS v ON v.stream = j.stream AND v.job_seq = r.job_seq AND v.turn = r.turn AND v.phases > 0
ORDER BY v.job_seq, v.phase
