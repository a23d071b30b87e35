package store_test

import (
	"bytes"
	"testing"
	"time"

	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

func testFiles(t *testing.T, p place) {
	s := p.open(t)
	ctx := t.Context()
	addHost(t, s, "r1")
	addHost(t, s, "r2")
	body := bytes.Repeat([]byte{0, 1, 0xff, '\n'}, 1000)
	f := must(s.PutFile(ctx, acme, body))(t)
	again := must(s.PutFile(ctx, acme, body))(t)
	equal(t, "the same again", again, f)
	equal(t, "size", f.Size, 4000)
	loose := must(s.PutFile(ctx, acme, []byte("nobody wants it")))(t)
	for what, bad := range map[string][]byte{"empty": nil, "too large": make([]byte, wire.MaxInput+1)} {
		t.Run(what, func(t *testing.T) { wants(t, second(s.PutFile(ctx, acme, bad)), store.ErrInvalid) })
	}
	_, _, err := s.Submit(ctx, acme, store.NewTask{Key: "k", Body: []byte(`{}`), Files: []string{"feed"}})
	wants(t, err, store.ErrInvalid)
	submit(t, s, store.NewTask{Key: "k", Files: []string{f.SHA256}}) // the refused one has left nothing under its key

	// Only the rack with the live lease of the task gets it.
	fetch := func(rack string, offset int64) (got []byte, err error) {
		got, size, err := s.RackFile(ctx, acme, rack, f.SHA256, offset, 1500)
		if err == nil {
			equal(t, "size of the whole", size, 4000)
		}
		return got, err
	}
	wants(t, second(fetch("r1", 0)), store.ErrNotFound)
	l := lease(t, s, claim("r1", 1, "c1"))
	var all []byte
	for len(all) < len(body) {
		part := must(fetch("r1", int64(len(all))))(t)
		if len(part) == 0 {
			t.Fatal("it ends too early")
		}
		all = append(all, part...)
	}
	if !bytes.Equal(all, body) {
		t.Error("the parts are not the file")
	}
	equal(t, "bytes after the end", len(must(fetch("r1", 4000))(t)), 0)
	wants(t, second(fetch("r2", 0)), store.ErrNotFound)
	wants(t, second(fetch("r1", -1)), store.ErrInvalid)
	_, _, err = s.RackFile(ctx, acme, "r1", loose.SHA256, 0, 10)
	wants(t, err, store.ErrNotFound)
	p.wait(leaseTime)
	wants(t, second(fetch("r1", 0)), store.ErrNotFound) // the lease is over, also before anybody has noticed
	p.wait(-leaseTime)
	ok(t, second(s.SetResult(ctx, acme, store.Result{Ref: l.Attempt.Ref, Host: "r1", Outcome: store.Failed})))
	wants(t, second(fetch("r1", 0)), store.ErrNotFound)

	// Files go with their task, and without one after a day.
	prune := func(tasks time.Time) int64 {
		t.Helper()
		return must(s.System().Prune(ctx, store.PruneOptions{Before: p.clock(), TasksBefore: tasks}))(t).Files
	}
	p.wait(23 * time.Hour)
	equal(t, "files that went within a day", prune(start), 0)
	p.wait(2 * time.Hour)
	equal(t, "files that went after a day", prune(start), 1)
	wants(t, second(s.File(ctx, acme, loose.SHA256)), store.ErrNotFound)
	equal(t, "the file of a task", must(s.File(ctx, acme, f.SHA256))(t), f)
	equal(t, "files that went with their task", prune(p.clock()), 1)
	wants(t, second(s.File(ctx, acme, f.SHA256)), store.ErrNotFound)
}
