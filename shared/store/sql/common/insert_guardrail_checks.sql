-- What guardrails said.
INSERT INTO guardrail_checks {values: id, engagement_seq, job_seq, turn, side, tool, content, passed, created_at}
ON CONFLICT (id) DO NOTHING
