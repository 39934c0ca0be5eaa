-- A row when the term with token $1 is the current one. The row is locked, so that no other process takes over before the
-- transaction ends.
SELECT holder FROM leaders WHERE name = 'scheduler' AND token = $1 AND holder <> '' {lock share}
