-- The rows of an engagement's journal that hold its checkpoints after the first $3 and up to $2 further ones, in their order: its
-- own and those that it reads of others. `upto` is how many there are with those of the row.
SELECT p.stream, p.last_event, p.last_message, p.turn, p.phase, p.phases, p.at, p.body, p.job_id, p.upto
FROM (SELECT u.*, CAST(sum(u.phases) OVER (ORDER BY u.turn, u.phase, u.last_event) AS BIGINT) AS upto
      FROM (SELECT {columns of checkpoints}, j.id AS job_id
            FROM engagements AS e
            JOIN jobs AS j ON j.engagement_seq = e.seq
            JOIN journal AS v ON v.stream = e.seq AND v.job_seq = j.seq AND v.phases > 0
            WHERE e.id = $1
            UNION ALL
            SELECT {columns of checkpoints}, j.id AS job_id
            FROM engagements AS e
            JOIN inheritances AS i ON i.engagement_seq = e.seq
            JOIN jobs AS j ON j.seq = i.source_seq
            JOIN journal AS v ON v.stream = i.source_seq AND v.job_seq = i.source_seq AND v.phases > 0 AND v.turn < i.turn_until
            WHERE e.id = $1) AS u) AS p
WHERE p.upto > $3 AND p.upto - p.phases < $3 + $2
ORDER BY p.turn, p.phase
