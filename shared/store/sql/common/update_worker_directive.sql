-- Sets the directive of a worker from its next beat on. $2: NULL takes it back.
UPDATE workers SET directive = $2 WHERE name = $1
