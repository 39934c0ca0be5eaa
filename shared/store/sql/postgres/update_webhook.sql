-- Writes what can be changed of a webhook; one that was inactive and is active now is told of what happens from now on.
-- Differs from SQLite: from this transaction on.
UPDATE webhooks
SET url = $2, events = $3, filter = $4, metadata = $5, secret = $6, old_secret = $7, old_until = $8, updated_at = $10,
    since = CASE WHEN active = 0 AND $9 = 1 THEN pg_current_xact_id()::text::bigint - 1 ELSE since END,
    active = $9
WHERE id = $1
