-- Takes away the uses of artifacts of streams whose last job is gone. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
UPDATE artifact_contents
SET uses = uses - g.gone
FROM (SELECT a.tenant, a.digest, count(*) AS gone
      FROM artifacts AS a
      WHERE a.engagement_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
        AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = a.engagement_seq)
      GROUP BY a.tenant, a.digest) AS g
WHERE artifact_contents.tenant = g.tenant AND artifact_contents.digest = g.digest
