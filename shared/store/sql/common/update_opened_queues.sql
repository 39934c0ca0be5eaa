-- Queues whose limit allows something again at $1: whoever waits for them is told once.
UPDATE queues SET opens_at = NULL WHERE opens_at <= $1
