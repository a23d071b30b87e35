-- Skills: subscriptions, what they hold, who has them. A tenant's skills have one version, which rises with each change; "changed"
-- is the version with which a row changed last. What ended or was removed stays as a row until it is pruned, so that it can be told.

CREATE TABLE catalogs (
	tenant  TEXT PRIMARY KEY,
	version INTEGER NOT NULL,
	oldest  INTEGER NOT NULL -- changes up to this version are not all known any more
) STRICT;

CREATE TABLE subscriptions (
	tenant  TEXT NOT NULL,
	id      TEXT NOT NULL,
	name    TEXT NOT NULL,
	active  INTEGER NOT NULL,
	created INTEGER NOT NULL,
	changed INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT;

CREATE TABLE grants (
	tenant       TEXT NOT NULL,
	subscription TEXT NOT NULL,
	rack         TEXT NOT NULL, -- '' for all racks of the tenant
	agent        TEXT NOT NULL, -- '' for all agents
	created      INTEGER NOT NULL,
	ended        INTEGER NOT NULL,
	changed      INTEGER NOT NULL,
	PRIMARY KEY (tenant, subscription, rack, agent)
) STRICT;
CREATE INDEX grants_of_rack ON grants (tenant, rack);

CREATE TABLE skills (
	tenant       TEXT NOT NULL,
	id           TEXT NOT NULL,
	subscription TEXT NOT NULL, -- never another one
	name         TEXT NOT NULL,
	kind         TEXT NOT NULL,
	version      TEXT NOT NULL,
	sha256       TEXT NOT NULL,
	size         INTEGER NOT NULL,
	updated      INTEGER NOT NULL,
	removed      INTEGER NOT NULL,
	changed      INTEGER NOT NULL,
	PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX skills_changed ON skills (tenant, changed);

-- The canonical JSON of each published version of a skill.
CREATE TABLE blobs (
	tenant TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	skill  TEXT NOT NULL,
	body   BLOB NOT NULL,
	at     INTEGER NOT NULL, -- when it was published or replaced
	PRIMARY KEY (tenant, sha256)
) STRICT;

CREATE TABLE catalog_keys (
	id      TEXT PRIMARY KEY,
	tenant  TEXT NOT NULL,
	number  INTEGER NOT NULL, -- from 1, in the tenant
	public  BLOB NOT NULL,
	private BLOB NOT NULL, -- sealed
	kek     TEXT NOT NULL,
	state   TEXT NOT NULL CHECK (state IN ('next', 'active', 'old')),
	created INTEGER NOT NULL,
	UNIQUE (tenant, number)
) STRICT;
CREATE UNIQUE INDEX catalog_keys_active ON catalog_keys (tenant) WHERE state = 'active';
