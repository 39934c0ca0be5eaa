-- What jobs want when their limit is used up.
UPDATE jobs SET on_limit = r.on_limit FROM {rows: id, on_limit} WHERE jobs.id = r.id
