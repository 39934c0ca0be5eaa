-- Limits whose time has come at $1: whoever waits for them is told once.
UPDATE rate_keys SET opens_at = NULL WHERE opens_at <= $1
