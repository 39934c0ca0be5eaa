-- The rows of shared budgets for a day: those that count altogether, and those of the day; one that is not there yet
-- has no seq. Those of delegates have no rule.
SELECT p.name, p.day, b.seq, b.currency, {columns of budget}
FROM (SELECT u.name, CAST(-1 AS BIGINT) AS day
      FROM {rows: name, day} JOIN budget_rules AS u ON u.name = r.name
      WHERE coalesce(u.tokens, u.cost) IS NOT NULL
      UNION
      SELECT u.name, r.day
      FROM {rows: name, day} JOIN budget_rules AS u ON u.name = r.name
      WHERE coalesce(u.tokens_per_day, u.cost_per_day) IS NOT NULL
      UNION
      SELECT o.name, o.day
      FROM {rows: name, day} JOIN totals AS o ON o.name = r.name AND o.day = -1
      WHERE o.name LIKE 'engagement/%') AS p
LEFT JOIN totals AS b ON b.name = p.name AND b.day = p.day
