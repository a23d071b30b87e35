package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Bounds of commands.
const (
	maxOpen      = 1000               // commands that are not over; more are fetched later
	keepCommands = 500                // that are over
	keepTime     = 7 * 24 * time.Hour // of those
	pendingPages = 100                // of one round of cmd.pending
	maxCommandID = 64                 // bytes
)

// forgottenVersion is above each version that a status can have reached. It is
// that of commands at or below the watermark of which there is no record.
const forgottenVersion = 1 << 30

// commands are taken one after the other and executed in lanes.
type commands struct {
	mu        sync.Mutex // guards what follows, and is held while a command is taken
	watermark *uint64    // as committed; nil before the first welcome of a generation
	base      *uint64    // what a welcome said, until it is committed
	trusted   bool       // the cloud's time is known: a welcome was here
	open      int        // commands that are not over
	lanes     map[int]*lane
}

// commandRecord is a command with its newest status.
type commandRecord struct {
	Command wire.Command       `json:"command"`
	Status  wire.CommandStatus `json:"status"`
	Entry   string             `json:"entry"` // of that status in the outbox
}

// welcome notes from where the cloud counts for this generation.
func (c *commands) welcome(base uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base, c.trusted = &base, true
}

// pendings asks for commands when there may be some.
func (f *Fleet) pendings(ctx context.Context) {
	again := f.backOff(time.Second, 30*time.Second)
	for {
		if !pause(ctx, time.Hour, f.ask) {
			return
		}
		again.reset()
		for {
			err := f.pending(ctx)
			f.kickLanes()
			if err == nil || errors.Is(err, link.ErrOffline) { // the next welcome asks again
				break
			}
			if ctx.Err() == nil {
				f.log.Warn("pending commands could not be taken", "err", err)
			}
			if !pause(ctx, again.after(err), nil) {
				return
			}
		}
	}
}

// pending takes what the cloud has above the watermark.
func (f *Fleet) pending(ctx context.Context) error {
	for range pendingPages {
		after, known, err := f.settleBase()
		if err != nil || !known {
			return err
		}
		var list wire.Commands
		if _, err := f.request(ctx, wire.KindCommand, wire.TypePending, wire.Pending{After: after}, wire.TypeCommands, &list); err != nil {
			return err
		}
		slices.SortStableFunc(list.Commands, func(a, b wire.Command) int { return cmp.Compare(a.Seq, b.Seq) })
		for _, c := range list.Commands {
			if err := f.take(c, true); err != nil {
				return fmt.Errorf("command %d: %w", c.Seq, err)
			}
		}
		if last := len(list.Commands) - 1; !list.More || last < 0 || list.Commands[last].Seq <= after {
			return nil
		}
	}
	return nil
}

// settleBase gives the watermark, after committing the one that the first welcome
// of a generation names.
func (f *Fleet) settleBase() (watermark uint64, known bool, err error) {
	c := &f.commands
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watermark == nil && c.base != nil {
		base := *c.base
		err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
			return put(b, keyNumbers, numbers{Generation: f.o.Generation, Watermark: &base})
		})
		if err != nil {
			return 0, false, err
		}
		c.watermark = &base
	}
	if c.watermark == nil {
		return 0, false, nil
	}
	return *c.watermark, true, nil
}

func (f *Fleet) onExecute(_ context.Context, m *wire.Message) {
	var c wire.Command
	if err := m.Decode(&c); err != nil {
		f.log.Warn("a command cannot be read", "err", err)
		return
	}
	if err := f.take(c, false); err != nil {
		f.log.Warn("a command could not be taken", "seq", c.Seq, "command", c.CommandID, "err", err)
		signal(f.ask)
	}
}

var (
	errNoWelcome = errors.New("no welcome was here yet")
	errTooMany   = errors.New("too many commands are open")
)

// take commits a command, with its first status, before anything is done about
// it. Only listed commands may leave out numbers: a gap in what is pushed means
// that something was lost.
func (f *Fleet) take(c wire.Command, listed bool) error {
	if c.Seq == 0 || c.CommandID == "" || len(c.CommandID) > maxCommandID {
		f.log.Warn("a command without number or id is ignored", "seq", c.Seq)
		return nil
	}
	if _, known, err := f.settleBase(); err != nil {
		return err
	} else if !known {
		return errNoWelcome
	}
	s := &f.commands
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case c.Seq <= *s.watermark:
		return f.tellAgain(c)
	case !listed && c.Seq != *s.watermark+1:
		signal(f.ask)
		return nil
	case s.open >= maxOpen:
		return errTooMany
	}
	r := f.judge(c)
	err := f.o.Bucket.Update(func(b *bolt.Bucket) error {
		if err := put(b, keyNumbers, numbers{Generation: f.o.Generation, Watermark: &c.Seq}); err != nil {
			return err
		}
		return f.putCommand(b, &r, nil)
	})
	if err != nil {
		return err
	}
	s.watermark = &c.Seq
	if r.Status.Status == wire.CommandAccepted {
		s.open++
		f.queue(c.Target.Slot, c.Seq)
	}
	return nil
}

// judge gives a command its first status.
func (f *Fleet) judge(c wire.Command) commandRecord {
	r := commandRecord{Command: c, Status: wire.CommandStatus{CommandID: c.CommandID, Status: wire.CommandRejected}}
	known, _ := f.o.Runner.Knows(c.Name)
	switch {
	case f.expired(c):
		r.Status.Error = expiredRefusal(c)
	case !known:
		r.Status.Error = wire.Refuse(wire.UnknownAction, map[string]any{"action": fmt.Sprintf("%.64s", c.Name)})
	case c.Target.Slot < 0:
		r.Status.Error = wire.Refuse(wire.SlotUnknown, map[string]any{"slot": c.Target.Slot})
	default:
		r.Status.Status = wire.CommandAccepted
	}
	return r
}

// expired judges by the cloud's time; a command is taken and begun only when a
// welcome has told it.
func (f *Fleet) expired(c wire.Command) bool {
	now, _ := f.o.Link.Now()
	return now.UnixMilli() >= c.Expires
}

func expiredRefusal(c wire.Command) *wire.Refusal {
	return wire.Refuse(wire.Expired, map[string]any{"exp": time.UnixMilli(c.Expires).UTC().Format(time.RFC3339)})
}

// putCommand stores a command with its next status, and puts that into the
// outbox: one transaction has both. A status that no frame carries goes without
// what makes it large.
func (f *Fleet) putCommand(b *bolt.Bucket, r *commandRecord, attachments []wire.Attachment) error {
	next := *r
	next.Status.Version++
	if d := next.Status.Detail; len(d) > 0 && wire.Unmarshal(d, new(any)) != nil {
		next.Status.Detail, next.Status.Error = nil, wire.Refuse(wire.Internal, nil) // the cloud could not read it
	}
	e := link.Entry{Type: wire.TypeCommandStatus, Body: next.Status, Attachments: attachments}
	id, err := f.o.Outbox.PutTx(b.Tx(), e)
	if errors.Is(err, link.ErrTooLarge) {
		size := len(next.Status.Detail)
		for _, a := range attachments {
			size += len(a.Data)
		}
		next.Status.Detail, next.Status.Error = nil, tooLarge("report", size, wire.MaxFrame)
		id, err = f.o.Outbox.PutTx(b.Tx(), link.Entry{Type: wire.TypeCommandStatus, Body: next.Status})
	}
	if err != nil {
		return err
	}
	next.Entry = id
	if err := put(b.Bucket(bucketCommands), number(next.Command.Seq), next); err != nil {
		return err
	}
	if next.Status.Status.Over() {
		if err := f.putCommandOver(b, next.Command.Seq); err != nil {
			return err
		}
	}
	b.Tx().OnCommit(func() { *r = next })
	return nil
}

// putCommandOver notes that a command is over, and forgets the oldest.
func (f *Fleet) putCommandOver(b *bolt.Bucket, seq uint64) error {
	in := b.Bucket(bucketCommandsEnd)
	now, trusted := f.o.Link.Now()
	if err := in.Put(number(seq), number(uint64(max(0, now.UnixMilli())))); err != nil {
		return err
	}
	var all [][2][]byte
	err := in.ForEach(func(k, v []byte) error {
		all = append(all, [2][]byte{append([]byte(nil), k...), append([]byte(nil), v...)})
		return nil
	})
	if err != nil {
		return err
	}
	oldest := number(uint64(max(0, now.Add(-keepTime).UnixMilli())))
	for i, one := range all {
		old := trusted && slices.Compare(one[1], oldest) < 0
		if !old && len(all)-i <= keepCommands {
			continue
		}
		if err := errors.Join(in.Delete(one[0]), b.Bucket(bucketCommands).Delete(one[0])); err != nil {
			return err
		}
	}
	return nil
}

// tellAgain answers a command that was here already: it is never taken twice.
func (f *Fleet) tellAgain(c wire.Command) error {
	r, ok, err := f.command(c.Seq)
	if err == nil && ok && r.Command.CommandID == c.CommandID {
		if held, err := f.o.Outbox.Holds(r.Entry); held && err == nil {
			return nil // it is on its way: this spares the card a write
		}
	}
	return f.o.Bucket.Update(func(b *bolt.Bucket) error {
		e := link.Entry{Type: wire.TypeCommandStatus}
		r, ok := get[commandRecord](b.Bucket(bucketCommands), number(c.Seq))
		switch {
		case !ok:
			e.Body = wire.CommandStatus{CommandID: c.CommandID, Version: forgottenVersion, Status: wire.CommandUnknown}
		case r.Command.CommandID != c.CommandID:
			e.Body = wire.CommandStatus{
				CommandID: c.CommandID, Version: 1, Status: wire.CommandRejected,
				Error: wire.Refuse(wire.RequestConflict, map[string]any{"request": c.CommandID}),
			}
		default:
			e.ID, e.Body = r.Entry, r.Status // a picture is not sent twice
		}
		_, err := f.o.Outbox.PutTx(b.Tx(), e)
		return err
	})
}
