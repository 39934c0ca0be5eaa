-- The receiver of webhook $1 said at $2 that it is gone for good.
UPDATE webhooks SET active = 0, updated_at = $2 WHERE id = $1
