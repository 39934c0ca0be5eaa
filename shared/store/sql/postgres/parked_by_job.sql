-- What parked jobs wait for: the newest event that says so. $1: seqs. Differs from SQLite: an array.
SELECT j.seq AS job_seq, v.stream, v.seq, v.data
FROM jobs AS j
JOIN events AS v ON v.stream = j.stream AND v.seq = (
    SELECT w.seq
    FROM events AS w
    WHERE w.stream = j.stream AND w.job_seq = j.seq AND w.name = 'job.parked'
    ORDER BY w.seq DESC
    LIMIT 1
)
WHERE j.seq = ANY($1)
