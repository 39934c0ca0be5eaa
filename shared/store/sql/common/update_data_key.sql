-- A data key is sealed anew, with another key of the configuration.
UPDATE data_keys SET body = $2 WHERE seq = $1
