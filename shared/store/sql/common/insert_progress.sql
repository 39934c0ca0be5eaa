-- How far a job is. Within the attempt that began at $6 it never goes back.
INSERT INTO progress (job_seq, millionths, message, data, at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (job_seq) DO UPDATE
SET millionths = CASE WHEN progress.at >= $6 AND progress.millionths > excluded.millionths THEN progress.millionths
                      ELSE excluded.millionths END,
    message = excluded.message, data = excluded.data, at = excluded.at
