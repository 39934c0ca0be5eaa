-- Removes version $2 of the schema of job type $1.
DELETE FROM job_schemas WHERE job_type = $1 AND version = $2
