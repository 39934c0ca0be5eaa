-- Deletes at most $2 deliveries that were made before $1 and wait for nothing, or for a webhook that is not active.
DELETE FROM deliveries
WHERE id IN (SELECT d.id
             FROM deliveries AS d
             WHERE d.created_at < $1
               AND (d.state <> 'pending'
                    OR NOT EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = d.webhook_id AND w.active = 1))
             LIMIT $2)
