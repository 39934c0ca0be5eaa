-- Rings the bells of all processes: $1 is what was rung.
SELECT pg_notify('turnstone', $1)
