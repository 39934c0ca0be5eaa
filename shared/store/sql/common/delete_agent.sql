-- Removes an agent from the register. $1 name.
DELETE FROM agents WHERE name = $1
