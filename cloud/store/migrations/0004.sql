-- What racks should be set to.
CREATE TABLE desired (
	host    TEXT PRIMARY KEY REFERENCES hosts (id),
	version INTEGER NOT NULL, -- only rises
	config  TEXT NOT NULL, -- a JSON object
	at      INTEGER NOT NULL, -- of the newest change
	applied INTEGER NOT NULL -- version that the rack has applied, as it last said
) STRICT;
