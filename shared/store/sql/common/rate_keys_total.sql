-- How many limits jobs have named.
SELECT count(*) AS keys FROM rate_keys
