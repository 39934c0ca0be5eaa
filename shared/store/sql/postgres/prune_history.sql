-- Drops the partitions of history whose jobs have all ended before $1. Differs from SQLite: partitions.
SELECT turnstone_drop_history($1) AS dropped
