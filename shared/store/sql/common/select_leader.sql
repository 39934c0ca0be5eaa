-- The leader, and the end of its term.
SELECT holder, expires_at FROM leaders WHERE name = 'scheduler'
