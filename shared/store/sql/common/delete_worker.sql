-- Takes a worker off the list.
DELETE FROM workers WHERE name = $1 AND instance = $2
