-- Takes away the uses of artifacts of streams whose last job is gone.
UPDATE artifact_contents
SET uses = uses - g.gone
FROM (SELECT a.tenant, a.digest, count(*) AS gone
      FROM artifacts AS a
      WHERE a.engagement_seq {in: seqs}
        AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = a.engagement_seq)
      GROUP BY a.tenant, a.digest) AS g
WHERE artifact_contents.tenant = g.tenant AND artifact_contents.digest = g.digest
