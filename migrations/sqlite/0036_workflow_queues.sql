-- The queues of a workflow's jobs, so that filters by queue match its events: JSON, sorted. NULL: it is older than this.
ALTER TABLE workflows ADD COLUMN queues TEXT;
