-- Makes the partitions of history for this million of jobs and the next, and drops those whose jobs have all ended before
-- $1. Differs from SQLite: partitions.
SELECT turnstone_add_history(q.last_value / 1000000 * 1000000)
       + turnstone_add_history(q.last_value / 1000000 * 1000000 + 1000000) AS made,
       turnstone_drop_history($1) AS dropped
FROM jobs_seq AS q
