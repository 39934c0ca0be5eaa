-- Those of these engagements that have a job which has not ended.
SELECT DISTINCT j.engagement_seq FROM jobs AS j WHERE j.engagement_seq {in: seqs} AND j.ended_at IS NULL
