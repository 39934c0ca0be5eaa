-- Sets the limits of an engagement's budget. A limit below what is spent already stands where no more can be spent.
UPDATE totals
SET token_limit = CASE WHEN $2 < settled + reserved THEN settled + reserved ELSE $2 END,
    money_limit = CASE WHEN $3 < money_settled + money_reserved THEN money_settled + money_reserved ELSE $3 END,
    on_exceed   = $4,
    warn_at     = $5
WHERE seq = $1
