-- Deletes the deliveries of a webhook that is gone.
DELETE FROM deliveries WHERE webhook_id = $1
