-- Credentials of a tenant's users: `user` is for jobs without a tenant, `member` for those of one. A member's subject is the tenant
-- (with its colons as %3A and its percent signs as %25), a colon, and the user's id.
ALTER TABLE credentials DROP CONSTRAINT credentials_kind_check;
ALTER TABLE credentials ADD CONSTRAINT credentials_kind_check CHECK (kind IN ('user', 'member', 'static'));
