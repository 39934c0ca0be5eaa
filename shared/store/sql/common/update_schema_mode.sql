-- Sets the mode of version $2 of the schemas of job type $1 to $3; a version that is NULL means all.
UPDATE job_schemas SET mode = $3 WHERE job_type = $1 AND ($2 IS NULL OR version = $2)
