-- New artifacts.
INSERT INTO artifacts {values: id, engagement_seq, job_seq, call_id, turn, part, tenant, digest, name, media_type,
                               created_at}
