-- The number of messages that engagement $1 reads of others, and the tokens of the turns that it reads.
SELECT CAST(coalesce(max(v.last_message), 0) AS BIGINT) AS messages,
       CAST(coalesce(sum(v.tokens_in + v.tokens_out), 0) AS BIGINT) AS tokens
FROM inheritances AS i
JOIN journal AS v ON v.stream = i.source_seq AND v.turn < i.turn_until
WHERE i.engagement_seq = $1
