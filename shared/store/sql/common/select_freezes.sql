-- Every freeze, that of the fleet first.
SELECT f.scope, f.reason, f.frozen_by, f.frozen_at FROM freezes AS f ORDER BY f.scope
