SELECT count(*) AS jobs
FROM jobs AS j
--- select_job_counts
-- How many jobs match. The filter is $1 to $8.
WHERE {wanted jobs}
--- select_tagged_job_counts
-- How many jobs with a tag match. The filter is $1 to $8. $9 tag.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE {wanted jobs}
--- select_dead_count
-- How many dead letters match. The filter is $1 to $6.
WHERE {wanted dead letters}
