SELECT a.seq, a.at, a.principal, a.tenant, a.action, a.target, a.outcome, a.old_hash, a.new_hash, a.source, a.request_id,
       a.previous, a.hash
FROM audit_entries AS a
--- select_audit_entries
-- The $2 entries after number $1, in order.
WHERE a.seq > $1
ORDER BY a.seq
LIMIT $2
--- select_newest_audit_entries
-- The newest entries of tenant $1 (NULL: all), the newest first: $2 of them after $3. $4 the number before which they
-- are; NULL matches all.
WHERE ($1 IS NULL OR a.tenant = $1) AND ($4 IS NULL OR a.seq < $4)
ORDER BY a.seq DESC
LIMIT $2 OFFSET $3
