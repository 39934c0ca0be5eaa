-- Takes the leadership for $1 until $3 with token $2, if it is free at $4, or renews it for who has it already.
-- A term that ends after $5 was written before the clock stepped back.
INSERT INTO leaders (name, holder, token, expires_at)
VALUES ('scheduler', $1, $2, $3)
ON CONFLICT (name) DO UPDATE
SET token      = CASE WHEN leaders.holder = excluded.holder THEN leaders.token ELSE excluded.token END,
    holder     = excluded.holder,
    expires_at = excluded.expires_at
WHERE leaders.holder = excluded.holder OR leaders.expires_at <= $4 OR leaders.expires_at > $5
RETURNING token
