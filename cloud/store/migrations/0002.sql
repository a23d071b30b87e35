-- For the retention of what is over.
CREATE INDEX tasks_pruned ON tasks (ended) WHERE pruned = 1;
CREATE INDEX commands_over ON commands (updated) WHERE state NOT IN ('queued', 'accepted', 'running');
CREATE INDEX accounts_day ON accounts (day);
