-- Those of these engagements that have a job which has not ended. $1 seqs. Differs from SQLite: an array.
SELECT DISTINCT j.engagement_seq FROM jobs AS j WHERE j.engagement_seq = ANY($1) AND j.ended_at IS NULL
