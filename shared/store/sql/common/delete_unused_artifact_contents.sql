-- Deletes what no artifact has any more: looked at again when somebody else has just used it.
DELETE FROM artifact_contents WHERE uses = 0
