-- Whether the term with token $1 is the current one.
-- Differs from PostgreSQL: there the row is locked, so that nobody takes over before the transaction ends.
SELECT holder FROM leaders WHERE name = 'scheduler' AND token = $1 AND holder <> ''
