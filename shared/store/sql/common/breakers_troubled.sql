-- What is not well.
SELECT name, failures, open_until FROM breakers
