-- The definition with the digest $2, if agent $1 was registered with it.
SELECT digest FROM registered_digests WHERE name = $1 AND digest = $2
