-- New engagements.
INSERT INTO engagements {values: seq, id, agent_name, digest, user_id, user_email, started_at, budget_seq, depth,
                                 parent_seq, limited_by, retention_ms}
