-- Credentials of users and of static identities: headers that are sent with the calls of a tool.

CREATE TABLE credentials (
    kind       TEXT   NOT NULL CHECK (kind IN ('user', 'static')),
    subject    TEXT   NOT NULL,                         -- the user's id, or the identity's name
    tool       TEXT   NOT NULL,                         -- '*': every tool
    header     TEXT   NOT NULL,                         -- in lower case
    prefix     TEXT   NOT NULL,
    form       TEXT   NOT NULL CHECK (form IN ('reference', 'value')),
    content    TEXT   NOT NULL,                         -- where the secret is, or the secret, which is always sealed
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (kind, subject, tool, header)
);
