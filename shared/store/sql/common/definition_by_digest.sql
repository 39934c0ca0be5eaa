-- One agent definition.
SELECT definition FROM agent_definitions WHERE digest = $1
