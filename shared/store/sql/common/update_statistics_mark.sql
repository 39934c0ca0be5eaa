-- Statistics count everything that ended before $1.
UPDATE statistics_mark SET ended_at = $1
