-- Notes when keys were last used. The use that another process noted later stays.
UPDATE api_keys SET last_used_at = r.at
FROM {rows: id, at}
WHERE api_keys.id = r.id AND (api_keys.last_used_at IS NULL OR api_keys.last_used_at < r.at)
