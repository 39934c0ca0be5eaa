-- The parts of the past that job $1 has from turn $2 on, each as 0 or 1. Reads of parts that are empty are saved.
SELECT
    CASE WHEN EXISTS (SELECT 1 FROM tool_calls AS t
                      WHERE t.engagement_seq = j.engagement_seq AND (t.turn >= $2 OR t.again = 1))
           OR EXISTS (SELECT 1 FROM inheritances AS i WHERE i.engagement_seq = j.engagement_seq)
         THEN CAST(1 AS BIGINT) ELSE 0 END AS calls,
    CASE WHEN EXISTS (SELECT 1 FROM reviews AS v WHERE v.job_seq = j.seq AND v.turn >= $2)
         THEN CAST(1 AS BIGINT) ELSE 0 END AS reviews,
    CASE WHEN EXISTS (SELECT 1 FROM delegations AS d WHERE d.parent_seq = j.seq AND d.turn >= $2)
         THEN CAST(1 AS BIGINT) ELSE 0 END AS delegations,
    CASE WHEN EXISTS (SELECT 1 FROM forks AS f WHERE f.engagement_seq = j.engagement_seq)
         THEN CAST(1 AS BIGINT) ELSE 0 END AS fork
FROM jobs AS j
WHERE j.id = $1
