-- What is not well; of very many, those that failed last.
SELECT name, failures, open_until FROM breakers ORDER BY failed_at DESC LIMIT 10000
