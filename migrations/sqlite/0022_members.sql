-- Credentials of a tenant's users: `user` is for jobs without a tenant, `member` for those of one. A member's subject is the tenant
-- (with its colons as %3A and its percent signs as %25), a colon, and the user's id.
CREATE TABLE credentials_of_all (
    kind       TEXT   NOT NULL CHECK (kind IN ('user', 'member', 'static')),
    subject    TEXT   NOT NULL,                         -- the user's id, or the identity's name
    tool       TEXT   NOT NULL,                         -- '*': every tool
    header     TEXT   NOT NULL,                         -- in lower case
    prefix     TEXT   NOT NULL,
    form       TEXT   NOT NULL CHECK (form IN ('reference', 'value')),
    content    TEXT   NOT NULL,                         -- where the secret is, or the secret, which is always sealed
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, subject, tool, header)
);
INSERT INTO credentials_of_all (kind, subject, tool, header, prefix, form, content, updated_at)
SELECT c.kind, c.subject, c.tool, c.header, c.prefix, c.form, c.content, c.updated_at FROM credentials AS c;
DROP TABLE credentials;
ALTER TABLE credentials_of_all RENAME TO credentials;
