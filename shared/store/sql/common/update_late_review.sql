-- Notes who answers a review late, unless that is noted already, or so many are that there is no room. $1 id, $2 the name between
-- line breaks.
UPDATE reviews
SET late = late || $2
WHERE id = $1 AND replace(late, $2, '') = late AND length(late) + length($2) <= 1000
