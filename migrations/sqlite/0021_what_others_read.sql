-- What was imported is kept from then on.

-- When an engagement came from another server: retention counts from then.
ALTER TABLE engagements ADD COLUMN imported_at INTEGER;
