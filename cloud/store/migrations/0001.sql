-- The first schema. Written for SQLite; dialect.go says what becomes of it on PostgreSQL.
-- Times are milliseconds since the epoch, 0 for "not yet". Truth values are 0 and 1. JSON is text, '' for none.

CREATE TABLE installation (
	one        INTEGER PRIMARY KEY CHECK (one = 1),
	id         TEXT NOT NULL,
	generation INTEGER NOT NULL,
	created    INTEGER NOT NULL,
	backup     INTEGER NOT NULL -- 1 in a copy made by Backup, until it is opened
) STRICT;

CREATE TABLE hosts (
	id             TEXT PRIMARY KEY,
	tenant         TEXT NOT NULL,
	name           TEXT NOT NULL,
	tags           TEXT NOT NULL,
	created        INTEGER NOT NULL,
	revoked        INTEGER NOT NULL,
	generation     INTEGER NOT NULL, -- of the last hello, with session and boot
	session        INTEGER NOT NULL,
	boot           TEXT NOT NULL,
	versions       TEXT NOT NULL,
	command_seq    INTEGER NOT NULL, -- counter row of commands.seq
	base_seq       INTEGER NOT NULL, -- command_seq when the generation began
	presence       TEXT NOT NULL,
	state_gen      INTEGER NOT NULL, -- of the newest state report
	state_sess     INTEGER NOT NULL,
	last_seen      INTEGER NOT NULL,
	skills_version TEXT NOT NULL,
	slots          TEXT NOT NULL
) STRICT;
CREATE INDEX hosts_of_tenant ON hosts (tenant, id);

-- Generations a rack has had: one of them coming back is a replay.
CREATE TABLE host_generations (
	host       TEXT NOT NULL REFERENCES hosts (id),
	generation INTEGER NOT NULL,
	at         INTEGER NOT NULL,
	PRIMARY KEY (host, generation)
) STRICT;

CREATE TABLE sessions (
	host  TEXT PRIMARY KEY REFERENCES hosts (id),
	nonce TEXT NOT NULL -- of the newest hello; no secret
) STRICT;

CREATE TABLE identities (
	host        TEXT NOT NULL REFERENCES hosts (id),
	number      INTEGER NOT NULL,
	tenant      TEXT NOT NULL,
	bearer_hash BLOB NOT NULL UNIQUE,
	mac_secret  BLOB NOT NULL,
	kek         TEXT NOT NULL,
	kid         TEXT NOT NULL,
	fingerprint TEXT NOT NULL,
	cert_pem    TEXT NOT NULL,
	issued      INTEGER NOT NULL,
	used        INTEGER NOT NULL,
	expires     INTEGER NOT NULL,
	revoked     INTEGER NOT NULL,
	PRIMARY KEY (host, number)
) STRICT;

CREATE TABLE profiles (
	id           TEXT PRIMARY KEY,
	tenant       TEXT NOT NULL,
	name         TEXT NOT NULL,
	provider     TEXT NOT NULL,
	model        TEXT NOT NULL,
	base_url     TEXT NOT NULL,
	timeout      INTEGER NOT NULL,
	options      TEXT NOT NULL,
	max_requests INTEGER NOT NULL,
	max_tokens   INTEGER NOT NULL,
	price_in     INTEGER NOT NULL,
	price_out    INTEGER NOT NULL,
	credential   BLOB NOT NULL,
	kek          TEXT NOT NULL,
	key_version  INTEGER NOT NULL,
	created      INTEGER NOT NULL,
	UNIQUE (tenant, name)
) STRICT;

-- The primary key is what makes it one per tenant.
CREATE TABLE active_profiles (
	tenant  TEXT PRIMARY KEY,
	profile TEXT NOT NULL REFERENCES profiles (id)
) STRICT;

CREATE TABLE profile_minutes (
	profile TEXT NOT NULL REFERENCES profiles (id),
	minute  INTEGER NOT NULL, -- since the epoch
	n       INTEGER NOT NULL,
	PRIMARY KEY (profile, minute)
) STRICT;

CREATE TABLE profile_days (
	profile TEXT NOT NULL REFERENCES profiles (id),
	day     TEXT NOT NULL,
	tokens  INTEGER NOT NULL, -- reserved and spent
	PRIMARY KEY (profile, day)
) STRICT;

CREATE TABLE accounts (
	tenant     TEXT NOT NULL,
	day        TEXT NOT NULL,
	host       TEXT NOT NULL,
	task       TEXT NOT NULL,
	profile    TEXT NOT NULL,
	requests   INTEGER NOT NULL,
	tokens_in  INTEGER NOT NULL,
	tokens_out INTEGER NOT NULL,
	cost       INTEGER NOT NULL,
	PRIMARY KEY (tenant, day, host, task, profile)
) STRICT;

CREATE TABLE tasks (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL,
	submit_key TEXT, -- NULL for none
	hash       BLOB NOT NULL, -- of what was submitted
	body       TEXT NOT NULL,
	rack       TEXT NOT NULL, -- the target, each '' or 0 for any
	slot       INTEGER NOT NULL,
	phone      TEXT NOT NULL,
	tag        TEXT NOT NULL,
	app        TEXT NOT NULL,
	not_before INTEGER NOT NULL,
	deadline   INTEGER NOT NULL,
	priority   INTEGER NOT NULL,
	repeatable INTEGER NOT NULL,
	state      TEXT NOT NULL,
	attempt    INTEGER NOT NULL, -- the one in force
	tries      INTEGER NOT NULL,
	cancel     INTEGER NOT NULL,
	created    INTEGER NOT NULL,
	ended      INTEGER NOT NULL,
	pruned     INTEGER NOT NULL, -- 1: its decisions and requests are gone
	error      TEXT NOT NULL,
	UNIQUE (tenant, submit_key)
) STRICT;
CREATE INDEX tasks_of_tenant ON tasks (tenant, id);
CREATE INDEX tasks_queue ON tasks (tenant, priority DESC, created, id) WHERE state = 'queued';
CREATE INDEX tasks_ended ON tasks (ended) WHERE ended > 0 AND pruned = 0;

CREATE TABLE attempts (
	task        TEXT NOT NULL REFERENCES tasks (id),
	attempt     INTEGER NOT NULL,
	tenant      TEXT NOT NULL,
	host        TEXT NOT NULL REFERENCES hosts (id),
	slot        INTEGER NOT NULL,
	phone       TEXT NOT NULL,
	claim_id    TEXT NOT NULL,
	state       TEXT NOT NULL,
	started     INTEGER NOT NULL,
	until       INTEGER NOT NULL,
	ended       INTEGER NOT NULL,
	next_step   INTEGER NOT NULL, -- counter row of decisions.step
	wrote       INTEGER, -- NULL: unknown
	steps       INTEGER NOT NULL,
	outcome     TEXT NOT NULL,
	result      TEXT NOT NULL,
	error       TEXT NOT NULL,
	question_id TEXT NOT NULL,
	question    TEXT NOT NULL,
	answer      TEXT NOT NULL,
	PRIMARY KEY (task, attempt),
	UNIQUE (host, claim_id)
) STRICT;
-- A slot is under one lease at a time, and a task too.
CREATE UNIQUE INDEX attempts_live_slot ON attempts (host, slot) WHERE state IN ('leased', 'running', 'waiting');
CREATE UNIQUE INDEX attempts_live_task ON attempts (task) WHERE state IN ('leased', 'running', 'waiting');
CREATE INDEX attempts_until ON attempts (until) WHERE state IN ('leased', 'running', 'waiting');

-- Who gave a task back, and with which skills.
CREATE TABLE releases (
	task           TEXT NOT NULL REFERENCES tasks (id),
	host           TEXT NOT NULL REFERENCES hosts (id),
	skills_version TEXT NOT NULL,
	PRIMARY KEY (task, host)
) STRICT;

CREATE TABLE plan_requests (
	host        TEXT NOT NULL REFERENCES hosts (id),
	id          TEXT NOT NULL,
	tenant      TEXT NOT NULL,
	task        TEXT NOT NULL, -- '' outside a task
	attempt     INTEGER NOT NULL,
	body_hash   BLOB NOT NULL,
	owner       TEXT NOT NULL, -- the replica that calls the provider
	owner_until INTEGER NOT NULL,
	state       TEXT NOT NULL CHECK (state IN ('open', 'decision', 'failure')),
	step        INTEGER NOT NULL,
	tool        TEXT NOT NULL, -- of a decision outside a task
	arguments   TEXT NOT NULL,
	failure     TEXT NOT NULL,
	created     INTEGER NOT NULL,
	PRIMARY KEY (host, id)
) STRICT;
CREATE INDEX plan_requests_of_task ON plan_requests (task, created);

CREATE TABLE decisions (
	task          TEXT NOT NULL,
	attempt       INTEGER NOT NULL,
	step          INTEGER NOT NULL,
	tenant        TEXT NOT NULL,
	host          TEXT NOT NULL,
	request_id    TEXT NOT NULL,
	system_prompt TEXT NOT NULL,
	user_prompt   TEXT NOT NULL,
	tool          TEXT NOT NULL,
	arguments     TEXT NOT NULL,
	tokens_in     INTEGER NOT NULL,
	tokens_out    INTEGER NOT NULL,
	profile       TEXT NOT NULL,
	at            INTEGER NOT NULL,
	PRIMARY KEY (task, attempt, step),
	UNIQUE (host, request_id),
	FOREIGN KEY (task, attempt) REFERENCES attempts (task, attempt)
) STRICT;

CREATE TABLE commands (
	id         TEXT PRIMARY KEY,
	tenant     TEXT NOT NULL,
	host       TEXT NOT NULL REFERENCES hosts (id),
	seq        INTEGER NOT NULL,
	slot       INTEGER NOT NULL, -- 0: the rack
	name       TEXT NOT NULL,
	args       TEXT NOT NULL,
	expires    INTEGER NOT NULL,
	idempotent INTEGER NOT NULL,
	state      TEXT NOT NULL,
	assumed    INTEGER NOT NULL, -- 1: the cloud had to guess the end
	version    INTEGER NOT NULL,
	progress   TEXT NOT NULL,
	detail     TEXT NOT NULL,
	created    INTEGER NOT NULL,
	updated    INTEGER NOT NULL,
	sent       INTEGER NOT NULL,
	UNIQUE (host, seq)
) STRICT;
CREATE INDEX commands_of_tenant ON commands (tenant, id);
CREATE INDEX commands_open ON commands (expires) WHERE state IN ('queued', 'accepted', 'running');

-- What racks tell by themselves; of each the newest stay.
CREATE TABLE events (
	number  INTEGER PRIMARY KEY AUTOINCREMENT,
	host    TEXT NOT NULL REFERENCES hosts (id),
	id      TEXT NOT NULL, -- of the message
	tenant  TEXT NOT NULL,
	kind    TEXT NOT NULL,
	slot    INTEGER NOT NULL, -- 0: the rack
	phone   TEXT NOT NULL,
	at      INTEGER NOT NULL, -- as the rack says
	got     INTEGER NOT NULL,
	detail  TEXT NOT NULL,
	dropped INTEGER NOT NULL,
	UNIQUE (host, id)
) STRICT;
CREATE INDEX events_of_host ON events (host, number);
CREATE INDEX events_of_tenant ON events (tenant, number);

CREATE TABLE audits (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	at     INTEGER NOT NULL,
	tenant TEXT NOT NULL,
	actor  TEXT NOT NULL,
	verb   TEXT NOT NULL,
	object TEXT NOT NULL,
	detail TEXT NOT NULL
) STRICT;
CREATE INDEX audits_of_tenant ON audits (tenant, id);
CREATE INDEX audits_at ON audits (at);
