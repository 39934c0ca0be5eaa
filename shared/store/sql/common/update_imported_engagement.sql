-- Notes that engagement $1 came from another server at $2.
UPDATE engagements SET imported_at = $2 WHERE seq = $1
