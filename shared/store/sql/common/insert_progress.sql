-- How far a job is. Within the attempt that began at $2 it never goes back.
INSERT INTO progress {values: job_seq, millionths, message, data, at}
ON CONFLICT (job_seq) DO UPDATE
SET millionths = CASE WHEN progress.at >= $2 AND progress.millionths > excluded.millionths THEN progress.millionths
                      ELSE excluded.millionths END,
    message = excluded.message, data = excluded.data, at = excluded.at
