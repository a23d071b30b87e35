-- Files of tasks, by their content. One that no task names stays for a day.
CREATE TABLE files (
	tenant TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	size   INTEGER NOT NULL,
	at     INTEGER NOT NULL, -- when it was uploaded, or a task submitted with it, last
	body   BLOB NOT NULL,
	PRIMARY KEY (tenant, sha256)
) STRICT;
CREATE INDEX files_at ON files (at);

CREATE TABLE task_files (
	task   TEXT NOT NULL REFERENCES tasks (id),
	tenant TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	PRIMARY KEY (task, sha256),
	FOREIGN KEY (tenant, sha256) REFERENCES files (tenant, sha256)
) STRICT;
CREATE INDEX task_files_of ON task_files (tenant, sha256);
