-- Breakers with failures that count. Of very many: those that failed last.
SELECT name, failures, open_until FROM breakers WHERE failures > 0 OR open_until IS NOT NULL ORDER BY changed_at DESC LIMIT 10000
