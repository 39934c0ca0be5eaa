-- The settings of agent $1 by tenant $2: for all its runs, and for run $3.
SELECT s.agent_name, s.tenant, s.run, s.version, s.args
FROM run_settings AS s
WHERE s.agent_name = $1 AND s.tenant = $2 AND s.run IN ('', $3)
ORDER BY s.run
