UPDATE engagements
--- update_continued_engagements
-- Engagements that got a further input whose turn it is: its agent is theirs. `retention_ms` is how long the agent
-- wants the conversation kept.
SET digest = r.digest, retention_ms = r.retention_ms
FROM {rows: seq, digest, retention_ms}
WHERE engagements.seq = r.seq
--- update_engagement_definitions
-- An engagement's agent is that of the input whose turn has come.
SET digest = d.digest, retention_ms = d.retention_ms
FROM {rows: seq, job_seq}
JOIN input_definitions AS d ON d.job_seq = r.job_seq
WHERE engagements.seq = r.seq
--- update_admitted_engagement
-- Engagement $1 runs with the definition $2, which equals its imported one.
SET digest = $2 WHERE seq = $1
--- update_imported_engagement
-- Notes that engagement $1 came from another server at $2.
SET imported_at = $2 WHERE seq = $1
