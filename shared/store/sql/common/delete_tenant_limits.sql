-- Lets tenant $1 have as much as it likes.
DELETE FROM tenant_limits WHERE tenant = $1
