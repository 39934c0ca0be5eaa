-- Who leads, until when.
SELECT holder, expires_at FROM leaders WHERE name = 'scheduler'
