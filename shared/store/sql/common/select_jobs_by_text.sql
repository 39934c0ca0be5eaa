SELECT j.seq, j.id
FROM jobs AS j
--- select_jobs_by_text
-- Jobs that something is to be done to, after the number $9. The filter is $1 to $8.
WHERE {wanted jobs}
  AND j.seq > $9
ORDER BY j.seq
LIMIT $10
--- select_tagged_jobs_by_text
-- Jobs with a tag that something is to be done to, after the number $10. The filter is $1 to $8. $9 tag.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE {wanted jobs}
  AND t.job_seq > $10
ORDER BY t.job_seq
LIMIT $11
--- select_dead_jobs_by_text
-- Dead letters that something is to be done to, after one of them. The filter is $1 to $6.
WHERE {wanted dead letters}
  AND j.seq > $7
ORDER BY j.seq
LIMIT $8
