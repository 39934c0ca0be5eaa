-- When a batch was closed and when it ended. $1 tag, $2 tenant; empty for the jobs of all tenants.
SELECT b.closed_at, b.ended_at FROM batches AS b WHERE b.tag = $1 AND b.tenant = $2
