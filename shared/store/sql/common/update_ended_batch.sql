-- Notes the end of a batch. $1 tag, $2 tenant, $3 number of its event, $4 now.
UPDATE batches SET event_seq = $3, ended_at = $4 WHERE tag = $1 AND tenant = $2
