-- When the next delivery is due.
SELECT min(d.next_at) AS due
FROM deliveries AS d
JOIN webhooks AS w ON w.id = d.webhook_id AND w.active = 1
WHERE d.state = 'pending'
