-- The keys of this fleet; there are only a few.
SELECT k.name, k.body, k.created_at FROM server_keys AS k ORDER BY k.name
