-- One agent definition.
SELECT digest, definition FROM agent_definitions WHERE digest = $1
