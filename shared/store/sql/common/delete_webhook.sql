-- Deletes webhook $1, if it is tenant $2's (NULL: anybody's).
DELETE FROM webhooks WHERE id = $1 AND ($2 IS NULL OR tenant = $2)
