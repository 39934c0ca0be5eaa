-- Notifies all processes: $1 holds the hints.
SELECT pg_notify('turnstone', $1)
