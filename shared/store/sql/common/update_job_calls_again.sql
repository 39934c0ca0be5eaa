-- Tells the worker that holds the job's lease that a call is to be made again.
UPDATE jobs SET calls_again = calls_again + 1 WHERE seq = $1
