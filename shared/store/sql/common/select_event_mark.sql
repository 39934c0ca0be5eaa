-- How far the reader $1 of all events has come.
SELECT m.number, m.stream, m.seq FROM event_marks AS m WHERE m.name = $1
