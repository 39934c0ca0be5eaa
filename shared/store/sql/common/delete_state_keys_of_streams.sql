-- Deletes the keys of streams whose last job is gone.
DELETE FROM state_keys
WHERE scope IN (
    SELECT s.name
    FROM state_scopes AS s
    WHERE s.engagement_seq {in: seqs}
      AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = s.engagement_seq)
)
