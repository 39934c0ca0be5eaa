-- Takes the row of writer $1 away: a statement of its that is still on its way finds no row for its mark, and fails.
DELETE FROM writers WHERE name = $1
