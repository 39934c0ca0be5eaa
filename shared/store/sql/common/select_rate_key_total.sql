-- How many limits jobs have named. $1: only those whose stored name begins with this; NULL for all.
SELECT count(*) AS keys FROM rate_keys AS k WHERE $1 IS NULL OR substr(k.name, 1, length($1)) = $1
