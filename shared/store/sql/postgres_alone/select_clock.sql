-- The database's time, in milliseconds: what all processes of a fleet agree on, whatever their machines say.
SELECT CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT) AS now_ms
