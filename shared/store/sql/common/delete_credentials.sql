-- Forgets the credentials of owner ($1, $2) for tool $3: header $4, or all of them when that is empty.
DELETE FROM credentials WHERE kind = $1 AND subject = $2 AND tool = $3 AND ($4 = '' OR header = $4)
