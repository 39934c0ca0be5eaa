-- Lets claims look again at the first $4 jobs of kind $1 in queue $2 that name the limit $3. $5: only those
-- of this tenant; NULL for all.
UPDATE jobs
SET set_aside = 0
WHERE set_aside = 1
  AND seq IN (SELECT j.seq FROM jobs AS j
              WHERE j.limit_key = $3 AND j.queue = $2 AND j.kind = $1 AND j.state = 'available' AND j.held = 0
                AND ($5 IS NULL OR j.tenant = $5)
              ORDER BY j.priority DESC, j.seq
              LIMIT $4)
