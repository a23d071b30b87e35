package fleet

import (
	"context"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/wire"
)

// lane executes the commands of one target, a slot or the rack, in their order.
type lane struct {
	seqs []uint64
	busy bool // a goroutine is at it
}

// queue adds a command to its target's lane. The lock of commands is held.
func (f *Fleet) queue(target int, seq uint64) {
	l := f.commands.lanes[target]
	if l == nil {
		l = &lane{}
		f.commands.lanes[target] = l
	}
	l.seqs = append(l.seqs, seq)
	f.kick(l)
}

// kick sets a lane going, once the cloud's time is known: a command that has
// expired meanwhile must not be done. The lock of commands is held.
func (f *Fleet) kick(l *lane) {
	if l.busy || len(l.seqs) == 0 || !f.commands.trusted {
		return
	}
	l.busy = f.spawn(func(ctx context.Context) { f.drive(ctx, l) })
}

func (f *Fleet) kickLanes() {
	f.commands.mu.Lock()
	defer f.commands.mu.Unlock()
	for _, l := range f.commands.lanes {
		f.kick(l)
	}
}

// drive executes a lane's commands until none is left or ctx ends.
func (f *Fleet) drive(ctx context.Context, l *lane) {
	for {
		f.commands.mu.Lock()
		if len(l.seqs) == 0 || ctx.Err() != nil {
			l.busy = false
			f.commands.mu.Unlock()
			return
		}
		seq := l.seqs[0]
		f.commands.mu.Unlock()
		if !f.perform(ctx, seq) {
			continue // ctx has ended; the next run decides by the record
		}
		f.commands.mu.Lock()
		l.seqs = l.seqs[1:]
		f.commands.open--
		f.commands.mu.Unlock()
	}
}

// takeUpCommands fills the lanes with what is not over, at the begin of a run.
func (f *Fleet) takeUpCommands() error {
	s := &f.commands
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.lanes = 0, map[int]*lane{}
	var open []commandRecord
	err := f.o.Bucket.View(func(b *bolt.Bucket) error {
		return each(f, b.Bucket(bucketCommands), func(_ []byte, r commandRecord) {
			if !r.Status.Status.Over() {
				open = append(open, r)
			}
		})
	})
	if err != nil {
		return err
	}
	for _, r := range open {
		s.open++
		f.queue(r.Command.Target.Slot, r.Command.Seq)
	}
	return nil
}

// perform does one command, and tells false if ctx ended before its end was
// committed. One that is running here was cut by the end of an earlier run: it may
// have happened, and is done again only where that does no harm.
func (f *Fleet) perform(ctx context.Context, seq uint64) bool {
	r, ok, err := f.command(seq)
	if err == nil && (!ok || r.Status.Status.Over()) {
		return true
	}
	for err != nil { // the database cannot be read at the moment
		if !pause(ctx, time.Second, nil) {
			return false
		}
		r, _, err = f.command(seq)
	}
	known, idempotent := f.o.Runner.Knows(r.Command.Name)
	late, begun := f.expired(r.Command), r.Status.Status == wire.CommandRunning
	switch {
	case begun && (late || !known || !idempotent):
		r.Status.Status = wire.CommandUnknown
		return f.commit(ctx, &r, nil)
	case late:
		r.Status.Status, r.Status.Error = wire.CommandRejected, expiredRefusal(r.Command)
		return f.commit(ctx, &r, nil)
	}
	r.Status.Status = wire.CommandRunning
	if !f.commit(ctx, &r, nil) {
		return false
	}
	attachments, ended := f.execute(ctx, &r)
	return ended && f.commit(ctx, &r, attachments)
}

// execute lets the runner work, and makes the command's end of what came out. It
// tells false if the run ended in the middle.
func (f *Fleet) execute(ctx context.Context, r *commandRecord) (attachments []wire.Attachment, ended bool) {
	limited, cancel := context.WithTimeout(ctx, f.o.CommandTime)
	defer cancel()
	report, err := f.o.Runner.Execute(limited, r.Command)
	refusal, refused := errors.AsType[*wire.Refusal](err)
	r.Status.Detail, r.Status.Error = report.Detail, refusal
	switch {
	case err == nil:
		r.Status.Status = wire.CommandSucceeded
	case ctx.Err() != nil:
		return nil, false
	case wire.Is(err, wire.OutcomeUnknown):
		r.Status.Status = wire.CommandUnknown
	case limited.Err() != nil:
		r.Status.Status = wire.CommandTimedOut
	default:
		r.Status.Status = wire.CommandFailed
		if !refused {
			r.Status.Error = wire.From(err)
		}
	}
	f.log.Info("a command has ended", "seq", r.Command.Seq, "command", r.Command.CommandID, "name", r.Command.Name,
		"slot", r.Command.Target.Slot, "status", r.Status.Status, "err", err)
	return report.Attachments, true
}

func (f *Fleet) command(seq uint64) (r commandRecord, ok bool, err error) {
	err = f.o.Bucket.View(func(b *bolt.Bucket) error {
		r, ok = get[commandRecord](b.Bucket(bucketCommands), number(seq))
		return nil
	})
	return r, ok, err
}

// commit stores a status, as soon as there is room for it; false if ctx ended
// before.
func (f *Fleet) commit(ctx context.Context, r *commandRecord, attachments []wire.Attachment) bool {
	again := f.backOff(time.Second, 30*time.Second)
	for {
		err := f.o.Bucket.Update(func(b *bolt.Bucket) error { return f.putCommand(b, r, attachments) })
		if err == nil {
			return true
		}
		f.log.Error("the status of a command could not be stored", "seq", r.Command.Seq, "status", r.Status.Status, "err", err)
		if !pause(ctx, again.after(nil), nil) {
			return false
		}
	}
}
