-- Ends the term with token $1: the next who asks leads.
UPDATE leaders SET holder = '', expires_at = 0 WHERE name = 'scheduler' AND token = $1
