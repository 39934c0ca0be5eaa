-- How many jobs wait in a queue: available, scheduled and retryable. Each part has an index of its own.
SELECT (SELECT count(*) FROM jobs AS j
        WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = 'plain' AND j.queue = $1)
     + (SELECT count(*) FROM jobs AS j
        WHERE j.state = 'available' AND j.held = 0 AND j.set_aside = 0 AND j.kind = 'agent' AND j.queue = $1)
     + (SELECT count(*) FROM jobs AS j
        WHERE j.state = 'available' AND j.limit_key IS NOT NULL AND j.set_aside = 1 AND j.held = 0 AND j.queue = $1)
     + (SELECT count(*) FROM jobs AS j WHERE j.state = 'available' AND j.held = 1 AND j.queue = $1)
     + (SELECT count(*) FROM jobs AS j WHERE j.state IN ('scheduled', 'retryable') AND j.queue = $1) AS depth
