-- Adds a commit that writes events, in the message that commits it: see insert_commit.sql. :id is its number.
INSERT INTO new_commits (id) VALUES (:id)
