package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"phonerack/sync/wire"
)

// The states of a command are the wire's.
const (
	CommandQueued    = wire.CommandQueued
	CommandAccepted  = wire.CommandAccepted
	CommandRejected  = wire.CommandRejected
	CommandRunning   = wire.CommandRunning
	CommandSucceeded = wire.CommandSucceeded
	CommandFailed    = wire.CommandFailed
	CommandTimedOut  = wire.CommandTimedOut
	CommandCancelled = wire.CommandCancelled
	CommandUnknown   = wire.CommandUnknown
)

// NewCommand is what a command starts with.
type NewCommand struct {
	Host       string
	Slot       int // 0: the rack itself
	Name       string
	Args       json.RawMessage
	Expires    time.Time // zero: MaxCommandLife from now, which is also the most
	Idempotent bool
}

// Command as stored.
type Command struct {
	NewCommand
	ID       string
	Tenant   string
	Seq      int64 // per host, from 1
	State    wire.CommandState
	Version  int64 // of the newest status
	Progress json.RawMessage
	Detail   json.RawMessage
	Created  time.Time
	Updated  time.Time
	Sent     time.Time // when it was first handed out; zero: it cannot have run
}

// CommandStatus is cmd.status.
type CommandStatus struct {
	Host     string
	ID       string
	Version  int64
	State    wire.CommandState
	Progress json.RawMessage
	Detail   json.RawMessage
}

// CommandFilter selects commands; empty fields select all.
type CommandFilter struct {
	Host   string
	States []wire.CommandState
}

const (
	openCommand  = `state IN ('queued', 'accepted', 'running')`
	pendingLimit = 100
	// silence is how long after its expiry a command that was begun stays open without a further word.
	silence = 24 * time.Hour
)

const commandColumns = `id, tenant, host, seq, slot, name, args, expires, idempotent, state, version, progress, detail, created, updated, sent`

func scanCommand(r scanner) (Command, error) {
	var c Command
	err := r.Scan(&c.ID, &c.Tenant, &c.Host, &c.Seq, &c.Slot, &c.Name, jsonIn{&c.Args}, timeIn{&c.Expires}, &c.Idempotent, &c.State,
		&c.Version, jsonIn{&c.Progress}, jsonIn{&c.Detail}, timeIn{&c.Created}, timeIn{&c.Updated}, timeIn{&c.Sent})
	return c, err
}

// QueueCommand stores a command under the rack's next number. ErrConflict: the rack is revoked.
func (s *Store) QueueCommand(ctx context.Context, sc Scope, n NewCommand) (c Command, err error) {
	err = check(sc.check(), inRange("slot", int64(n.Slot), 0, maxSlot), textOK("name", n.Name, 1, maxName), jsonOK("args", n.Args))
	if err != nil {
		return Command{}, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		c = Command{NewCommand: n, ID: NewID(), Tenant: sc.Tenant, State: CommandQueued, Created: fromMS(t.now), Updated: fromMS(t.now)}
		last := t.now + MaxCommandLife.Milliseconds()
		if n.Expires.IsZero() {
			n.Expires = fromMS(last)
		}
		if err := inRange("expiry", n.Expires.UnixMilli(), t.now, last); err != nil {
			return err
		}
		c.Expires = fromMS(ms(n.Expires))
		h, err := t.lockHost(n.Host)
		if err != nil {
			return err
		}
		if !h.Revoked.IsZero() {
			return fmt.Errorf("%w: the rack is revoked", ErrConflict)
		}
		if err = t.row(`UPDATE hosts SET command_seq = command_seq + 1 WHERE id = ? RETURNING command_seq`, n.Host).Scan(&c.Seq); err != nil {
			return err
		}
		_, err = t.exec(`INSERT INTO commands (`+commandColumns+`, assumed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, '', '', ?, ?, 0, 0)`,
			c.ID, c.Tenant, c.Host, c.Seq, c.Slot, c.Name, string(c.Args), ms(c.Expires), bit(c.Idempotent), c.State, t.now, t.now)
		if err != nil {
			return err
		}
		return t.audit("command.queue", c.ID, map[string]any{"host": c.Host, "slot": c.Slot, "name": c.Name, "seq": c.Seq})
	})
	return c, err
}

// PendingCommands gives a rack's open, unexpired commands above a number, in order, at most 100, and notes that they
// were handed out. A push is PendingCommands too.
func (s *Store) PendingCommands(ctx context.Context, sc Scope, host string, after int64) (all []Command, err error) {
	if err = sc.check(); err != nil {
		return nil, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		if _, err := t.lockHost(host); err != nil {
			return err
		}
		all, err = list(t, scanCommand, `SELECT `+commandColumns+` FROM commands WHERE host = ? AND seq > ? AND `+openCommand+
			` AND expires > ? ORDER BY seq LIMIT ?`, host, after, t.now, pendingLimit)
		if err != nil || len(all) == 0 {
			return err
		}
		n, err := t.exec(`UPDATE commands SET sent = ? WHERE host = ? AND seq > ? AND seq <= ? AND sent = 0 AND `+openCommand+` AND expires > ?`,
			t.now, host, after, all[len(all)-1].Seq, t.now)
		if err != nil || n == 0 {
			return err
		}
		for i := range all {
			if all[i].Sent.IsZero() {
				all[i].Sent = fromMS(t.now)
			}
		}
		return t.audit("command.send", host, map[string]any{"from": all[0].Seq, "to": all[len(all)-1].Seq})
	})
	return all, err
}

// SetCommandStatus notes what a rack says of a command. Only a higher version counts, and nothing after a terminal
// state, except that the rack's own end replaces one that the cloud had to assume at expiry.
func (s *Store) SetCommandStatus(ctx context.Context, sc Scope, st CommandStatus) (applied bool, err error) {
	err = check(sc.check(), jsonOK("progress", st.Progress), jsonOK("detail", st.Detail), checkCommandState(st.State))
	if err != nil {
		return false, err
	}
	err = s.write(ctx, sc, func(t *tx) error {
		applied = false
		var n int64
		err := t.row(`SELECT count(*) FROM commands WHERE id = ? AND host = ? AND tenant = ?`, st.ID, st.Host, sc.Tenant).Scan(&n)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		n, err = t.exec(`UPDATE commands SET state = ?, version = ?, progress = ?, detail = ?, updated = ?, assumed = 0
			WHERE id = ? AND version < ? AND (`+openCommand+` OR (assumed = 1 AND ? = 1))`,
			st.State, st.Version, string(st.Progress), string(st.Detail), t.now, st.ID, st.Version, bit(st.State.Over()))
		if err != nil || n == 0 {
			return err
		}
		applied = true
		return t.audit("command.status", st.ID, map[string]any{"state": st.State, "version": st.Version})
	})
	return applied, err
}

func checkCommandState(s wire.CommandState) error {
	switch s {
	case CommandAccepted, CommandRejected, CommandRunning, CommandSucceeded, CommandFailed, CommandTimedOut, CommandCancelled, CommandUnknown:
		return nil
	}
	return invalid("command state %.40q", string(s))
}

// Command gives a command.
func (s *Store) Command(ctx context.Context, sc Scope, id string) (c Command, err error) {
	if err = sc.check(); err != nil {
		return Command{}, err
	}
	err = s.read(ctx, sc, func(t *tx) error {
		c, err = scanCommand(t.row(`SELECT `+commandColumns+` FROM commands WHERE id = ? AND tenant = ?`, id, sc.Tenant))
		return err
	})
	return c, err
}

// Commands lists commands, newest first.
func (s *Store) Commands(ctx context.Context, sc Scope, f CommandFilter, p Page) (all []Command, next string, err error) {
	size, err := p.size()
	if err = check(sc.check(), err); err != nil {
		return nil, "", err
	}
	q, args := `SELECT `+commandColumns+` FROM commands WHERE tenant = ? AND id < ?`, []any{sc.Tenant, cmp.Or(p.After, newest)}
	if f.Host != "" {
		q, args = q+` AND host = ?`, append(args, f.Host)
	}
	q, args = inStates(q, args, f.States)
	err = s.read(ctx, sc, func(t *tx) error {
		all, err = list(t, scanCommand, q+` ORDER BY id DESC LIMIT ?`, append(args, size+1)...)
		return err
	})
	all, next = cut(all, size, func(c Command) string { return c.ID })
	return all, next, err
}

// inStates restricts a query to states; none means all.
func inStates[S ~string](q string, args []any, states []S) (string, []any) {
	if len(states) == 0 {
		return q, args
	}
	for _, s := range states {
		args = append(args, string(s))
	}
	return q + ` AND state IN (` + marks(len(states)) + `)`, args
}

// endCommands ends a rack's open commands: nobody is going to say how they ended.
func (t *tx) endCommands(host string) (ended []string, err error) {
	scan := func(r scanner) (id string, err error) { return id, r.Scan(&id) }
	return list(t, scan, `UPDATE commands SET state = ?, updated = ? WHERE host = ? AND `+openCommand+` RETURNING id`, CommandUnknown, t.now, host)
}
