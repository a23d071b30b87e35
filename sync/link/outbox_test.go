package link_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"

	"phonerack/sync/link"
	"phonerack/sync/link/linktest"
	"phonerack/sync/wire"
)

// filler is about n bytes of JSON that do not compress into fewer.
func filler(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n) + `"`) }

func event(kind string, n int) link.Entry {
	return link.Entry{Type: wire.TypeEvent, Body: wire.Event{Kind: kind, At: noon.UnixMilli(), Detail: filler(n)}}
}

func status(id string, n int) link.Entry {
	return link.Entry{Type: wire.TypeCommandStatus, Body: wire.CommandStatus{CommandID: id, Version: 1, Status: wire.CommandRunning, Detail: filler(n)}}
}

func TestOutboxSendsInOrderWithFramesMadeAnew(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		var want []string
		for i := range 30 {
			want = append(want, putResult(t, b, fmt.Sprint(i)))
		}
		time.Sleep(time.Hour) // the frame's time is that of its sending
		b.online()
		synctest.Wait()
		var got []string
		for _, h := range b.cloud.Heard(wire.TypeResult) {
			got = append(got, h.ID)
			if at := time.UnixMilli(h.TS); at.Before(noon.Add(time.Hour-time.Minute)) || h.Exp != 0 || h.Sess == "" || h.Boot != "4-9f3c" {
				t.Errorf("sent with ts %s, exp %d, sess %q, boot %q", at, h.Exp, h.Sess, h.Boot)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("sent %v", got)
		}
		if s := b.link.Outbox().Status(); s.Bytes != 0 || s.Entries[link.Results] != 0 {
			t.Errorf("what was acknowledged is still there: %+v", s)
		}
	})
}

func TestOutboxLeavesOnlyForTheRightAcknowledgement(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeResult, nil)
		b.online()
		id := putResult(t, b, "t1")
		synctest.Wait()
		h := b.cloud.Heard(wire.TypeResult)[0]
		cmd := h
		cmd.Topic.Kind = wire.KindCommand
		b.cloud.Reply(cmd, wire.TypeCommandAck, wire.Ack{})
		synctest.Wait()
		if !held(t, b, id) {
			t.Fatal("the acknowledgement of a command took a result out")
		}
		b.cloud.Reply(h, wire.TypeTaskAck, wire.Ack{Ignored: true})
		synctest.Wait()
		if held(t, b, id) {
			t.Error("it was acknowledged and is still there")
		}
	})
}

func TestOutboxWindowIsBoundedAndResendsTheSameID(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.cloud.On(wire.TypeResult, nil)
		b.online()
		var ids []string
		for i := range 20 {
			ids = append(ids, putResult(t, b, fmt.Sprint(i)))
		}
		synctest.Wait()
		if n := len(b.cloud.Heard(wire.TypeResult)); n != 8 {
			t.Errorf("%d are on their way without an acknowledgement", n)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		var got []string
		for _, h := range b.cloud.Heard(wire.TypeResult) {
			got = append(got, h.ID)
		}
		if want := append(slices.Clone(ids[:8]), ids[:8]...); !slices.Equal(got, want) {
			t.Errorf("sent %v", got)
		}
		b.cloud.On(wire.TypeResult, b.cloud.Answer)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := b.link.Outbox().Status().Entries[link.Results]; n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

func TestOutboxSetsAsideWhatIsRefusedForGood(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		bad := putResult(t, b, "bad")
		good := putResult(t, b, "good")
		b.cloud.On(wire.TypeResult, func(h linktest.Heard) {
			if h.ID == bad {
				b.cloud.Reply(h, wire.TypeError, wire.Refuse(wire.RequestConflict, nil))
				return
			}
			b.cloud.Answer(h)
		})
		b.online()
		synctest.Wait()
		list, err := b.link.Outbox().Refused()
		if err != nil || len(list) != 1 || list[0].ID != bad || list[0].Refusal.Code != wire.RequestConflict || !strings.Contains(string(list[0].Body), "bad") {
			t.Errorf("set aside %+v, %v", list, err)
		}
		if held(t, b, bad) || held(t, b, good) || b.link.Outbox().Status().Refused != 1 {
			t.Errorf("status %+v", b.link.Outbox().Status())
		}
		if !strings.Contains(b.log.String(), "refuses an entry of the outbox for good") {
			t.Error("nobody was told")
		}
	})
}

func TestOutboxWaitsAfterARefusalThatPasses(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		first, second := putResult(t, b, "1"), putResult(t, b, "2")
		refusals := 0
		b.cloud.On(wire.TypeResult, func(h linktest.Heard) {
			if refusals == 0 {
				refusals++
				b.cloud.Reply(h, wire.TypeError, wire.Refuse(wire.LimitExceeded, nil).After(20*time.Second))
				return
			}
			if time.Since(noonStart(b)) < 20*time.Second {
				return // it is busy
			}
			b.cloud.Answer(h)
		})
		b.online()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		before := len(b.cloud.Heard(wire.TypeResult))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if held(t, b, first) || held(t, b, second) {
			t.Errorf("not sent again after the pause (%d heard, then %d)", before, len(b.cloud.Heard(wire.TypeResult)))
		}
		if before > 2 {
			t.Errorf("%d sendings while it had to wait", before)
		}
	})
}

// noonStart is when the bench began.
func noonStart(b *bench) time.Time { return b.o.Clock.(clock).start }

// An entry that is put off again and again must not hold up the rest.
func TestOutboxEntryThatIsAlwaysPutOffStepsAside(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		bad, good := putResult(t, b, "bad"), putResult(t, b, "good")
		b.cloud.On(wire.TypeResult, func(h linktest.Heard) {
			switch h.ID {
			case bad:
				b.cloud.Reply(h, wire.TypeError, wire.Refuse(wire.LimitExceeded, nil))
			case good:
				if len(b.cloud.Heard(wire.TypeResult)) > 6 {
					b.cloud.Answer(h)
				}
			}
		})
		b.online()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if held(t, b, good) || !held(t, b, bad) {
			t.Errorf("status %+v", b.link.Outbox().Status())
		}
	})
}

func TestOutboxDropsEventsOldestFirstAndTellsHowMany(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.o.OutboxBytes = 1 << 20
		b.make()
		for i := range 24 { // 24 * 64 KiB are half as much again as there is room
			if _, err := b.link.Outbox().Put(event(fmt.Sprintf("e%02d", i), 64<<10)); err != nil {
				t.Fatal(err)
			}
		}
		s := b.link.Outbox().Status()
		if s.Bytes > 1<<20 || int(s.Dropped)+s.Entries[link.Events] != 24 || s.Dropped == 0 {
			t.Fatalf("status %+v", s)
		}
		// A result pushes events out, too; a status as well; nothing pushes them out.
		if _, err := b.link.Outbox().Put(link.Entry{Type: wire.TypeResult, Body: wire.Result{TaskID: "t", Attempt: 1, Result: filler(200 << 10)}}); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := b.link.Outbox().Put(status(fmt.Sprint(i), 200<<10)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.link.Outbox().Put(status("4", 250<<10)); !errors.Is(err, link.ErrFull) {
			t.Errorf("a status above the bound: %v", err)
		}
		last, err := b.link.Outbox().Put(event("last", 300<<10-100<<10))
		if err != nil {
			t.Fatal(err)
		}
		s = b.link.Outbox().Status()
		b.online()
		time.Sleep(time.Minute)
		// Every event is either heard or counted.
		if _, err := b.link.Outbox().Put(event("after", 10)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		heard, dropped := 0, 0
		for _, h := range b.cloud.Heard(wire.TypeEvent) {
			heard++
			dropped += linktest.Decode[wire.Event](t, h.Message).Dropped
		}
		if heard+dropped != 26 || uint64(dropped) != s.Dropped {
			t.Errorf("%d heard and %d told as dropped of 26; status %+v (last %s)", heard, dropped, s, last)
		}
	})
}

func TestOutboxReservesRoomForResults(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.o.OutboxBytes = 4 << 20
		b.make()
		box := b.link.Outbox()
		var places []*link.Reservation
		for box.CanClaim() {
			r, err := box.Reserve()
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, r)
		}
		if _, err := box.Reserve(); !errors.Is(err, link.ErrFull) || len(places) != (4<<20)/10*8/link.ResultRoom {
			t.Fatalf("%d places, then %v", len(places), err)
		}
		full := 0
		for {
			if _, err := box.Put(status(fmt.Sprint(full), 200<<10)); err != nil {
				break
			}
			full++
		}
		for range 100 {
			if _, err := box.Put(event("e", 100<<10)); err != nil {
				t.Fatal(err)
			}
		}
		for i, r := range places {
			_, err := box.Put(link.Entry{Type: wire.TypeResult, Body: wire.Result{TaskID: fmt.Sprint(i), Attempt: 1, Result: filler(245 << 10)}})
			if err != nil {
				t.Fatalf("result %d of %d has no room: %v", i, len(places), err)
			}
			r.Release()
			r.Release() // once counts
		}
		if box.CanClaim() {
			t.Error("a full outbox lets tasks be claimed")
		}
	})
}

func TestOutboxRefusesWhatNoFrameHolds(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.o.MaxFrame = 128 << 10
		b.make()
		if _, err := b.link.Outbox().Put(status("c", 200<<10)); !errors.Is(err, link.ErrTooLarge) {
			t.Errorf("%v", err)
		}
		if _, err := b.link.Outbox().Put(link.Entry{Type: wire.TypeClaim, Body: wire.Claim{}}); err == nil {
			t.Error("a claim was put into the outbox")
		}
		if _, err := b.link.Outbox().Put(link.Entry{ID: "no ulid", Type: wire.TypeResult, Body: wire.Result{}}); err == nil {
			t.Error("an id that is no ULID was taken")
		}
	})
}

// TestOutboxKeepsHTMLAsItIs: written as \u003c, a page in a command's detail would fit no frame.
func TestOutboxKeepsHTMLAsItIs(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		detail := json.RawMessage(`{"page":"` + strings.Repeat("<&>", 60<<10) + `"}`)
		_, err := b.link.Outbox().Put(link.Entry{Type: wire.TypeCommandStatus, Body: wire.CommandStatus{CommandID: "c", Version: 1, Status: wire.CommandSucceeded, Detail: detail}})
		if err != nil {
			t.Fatal(err)
		}
		b.online()
		synctest.Wait()
		heard := b.cloud.Heard(wire.TypeCommandStatus)
		if len(heard) != 1 || !bytes.Contains(heard[0].Body, detail) {
			t.Errorf("the cloud has heard %d", len(heard))
		}
	})
}

func TestOutboxPutIsPartOfACallersTransaction(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		db := b.o.Bucket.(bucket).db
		fail := errors.New("no")
		entry := link.Entry{ID: wire.NewID(noon), Type: wire.TypeResult, Body: wire.Result{TaskID: "t1", Attempt: 1}}
		for _, want := range []error{fail, nil, nil} { // the same id twice is one entry
			err := db.Update(func(tx *bolt.Tx) error {
				if _, err := b.link.Outbox().PutTx(tx, entry); err != nil {
					return err
				}
				return want
			})
			if !errors.Is(err, want) {
				t.Fatal(err)
			}
			if n := b.link.Outbox().Status().Entries[link.Results]; want != nil && n != 0 || want == nil && n != 1 {
				t.Errorf("%d entries after %v", n, want)
			}
		}
		b.online()
		synctest.Wait()
		if n := len(b.cloud.Heard(wire.TypeResult)); n != 1 {
			t.Errorf("the cloud heard it %d times", n)
		}
	})
}

func TestOutboxKeepsAttachments(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		picture := bytes.Repeat([]byte{0, 0xff, '\n'}, 1000)
		e := status("c1", 10)
		e.Attachments = []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: picture}}
		if _, err := b.link.Outbox().Put(e); err != nil {
			t.Fatal(err)
		}
		b.online()
		synctest.Wait()
		if got := b.cloud.Heard(wire.TypeCommandStatus)[0].Attachment("screen"); !bytes.Equal(got, picture) {
			t.Errorf("%d bytes came", len(got))
		}
	})
}

// TestPicturesInTheOutboxAreReadableInMemoryAlone: not in the database, and after a restart the entry goes without them.
func TestPicturesInTheOutboxAreReadableInMemoryAlone(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		b.make()
		picture := []byte("what the screen has shown")
		e := status("c1", 10)
		e.Attachments = []wire.Attachment{{Name: "screen", Type: "image/jpeg", Data: picture}}
		if _, err := b.link.Outbox().Put(e); err != nil {
			t.Fatal(err)
		}
		err := b.o.Bucket.View(func(bb *bolt.Bucket) error {
			_, v := bb.Bucket([]byte("outbox." + string(link.Statuses))).Cursor().First()
			if !bytes.Contains(v, []byte(`"c1"`)) || bytes.Contains(v, picture) {
				t.Errorf("stored as %q", v)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		link.AnotherProcess()
		b.make()
		b.online()
		synctest.Wait()
		if got := b.cloud.Heard(wire.TypeCommandStatus); len(got) != 1 || len(got[0].Attachments) != 0 {
			t.Errorf("after a restart: %+v", got)
		}
	})
}

// damage changes a letter of the first value of a class, which stays proper JSON.
func damage(t *testing.T, b *bench, class link.Class) {
	t.Helper()
	err := b.o.Bucket.Update(func(bb *bolt.Bucket) error {
		in := bb.Bucket([]byte("outbox." + string(class)))
		k, v := in.Cursor().First()
		v = bytes.Clone(v)
		v[bytes.Index(v, []byte("succeeded"))] ^= 1
		return in.Put(bytes.Clone(k), v)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOutboxSkipsDamagedEntries(t *testing.T) {
	for _, when := range []string{"at the opening", "while it runs"} {
		t.Run(when, func(t *testing.T) {
			dialogue(t, func(t *testing.T, b *bench) {
				b.make()
				putResult(t, b, "1")
				good := putResult(t, b, "2")
				damage(t, b, link.Results)
				if when == "at the opening" {
					b.link = nil
				}
				b.online()
				synctest.Wait()
				if h := b.cloud.Heard(wire.TypeResult); len(h) != 1 || h[0].ID != good {
					t.Errorf("heard %d", len(h))
				}
				if s := b.link.Outbox().Status(); s.Bytes != 0 {
					t.Errorf("status %+v", s)
				}
				if !strings.Contains(b.log.String(), "cannot be read and is gone") {
					t.Error("nobody was told")
				}
			})
		})
	}
}

// child puts results and tells of each on standard output after Put has returned,
// until it is killed.
func child() {
	db, err := bolt.Open(os.Getenv("LINK_TEST_CHILD"), 0o600, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte("link"))
		return err
	}); err != nil {
		os.Exit(1)
	}
	l, err := link.New(link.Options{
		Broker: "tcp://broker.test:1883", Tenant: "acme", Rack: "rack-1", Generation: 1, Boot: "1-a",
		Keys: func() []wire.Keys { return nil }, Bucket: bucket{db},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		id, err := l.Outbox().Put(link.Entry{Type: wire.TypeResult, Body: wire.Result{TaskID: fmt.Sprint(i), Attempt: 1}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(id)
	}
}

// TestOutboxSurvivesKill: what Put has returned for is there after kill -9, once,
// in order, and nothing else but what was being put.
func TestOutboxSurvivesKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rack.db")
	var told []string
	for round := range 4 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "LINK_TEST_CHILD="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 10+7*round && lines.Scan(); n++ {
			told = append(told, lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // said before the kill
			told = append(told, lines.Text())
		}
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	}
	b := newBench(t)
	b.o.Bucket = openBucket(t, path)
	b.make()
	n := b.link.Outbox().Status().Entries[link.Results]
	if n < len(told) || n > len(told)+4 {
		t.Errorf("%d entries, %d were told of", n, len(told))
	}
	for _, id := range told {
		if !held(t, b, id) {
			t.Errorf("%s is lost", id)
		}
	}
	b.online()
	deadline := time.Now().Add(20 * time.Second)
	for b.link.Outbox().Status().Entries[link.Results] > 0 && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	b.stop()
	var got []string
	for _, h := range b.cloud.Heard(wire.TypeResult) {
		if slices.Contains(told, h.ID) {
			got = append(got, h.ID)
		}
	}
	if !slices.Equal(got, told) {
		t.Errorf("sent %d of %d in another order", len(got), len(told))
	}
}

// TestOutboxAtEachCommit: a copy of the database as it was at each commit is
// opened; an entry is there from its Put to its acknowledgement, in each of them.
func TestOutboxAtEachCommit(t *testing.T) {
	dialogue(t, func(t *testing.T, b *bench) {
		copies := t.TempDir()
		var mu sync.Mutex // guards n and acked, and keeps a commit and its copy together
		n := 0
		inner := b.o.Bucket.(bucket)
		b.o.Bucket = snapshots{inner, &mu, func() {
			n++
			if err := inner.db.View(func(tx *bolt.Tx) error { return tx.CopyFile(filepath.Join(copies, fmt.Sprintf("%03d", n)), 0o600) }); err != nil {
				t.Error(err)
			}
		}}
		acked := map[string]int{} // commits when the acknowledgement was sent
		b.cloud.On(wire.TypeResult, func(h linktest.Heard) {
			mu.Lock()
			acked[h.ID] = n
			mu.Unlock()
			b.cloud.Answer(h)
		})
		b.make()
		put := map[string]int{} // commits when Put had returned
		for i := range 5 {
			put[putResult(t, b, fmt.Sprint(i))] = n
		}
		b.online()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if n < 8 || len(acked) != 5 {
			t.Fatalf("%d commits, %d acknowledgements", n, len(acked))
		}
		for i := 1; i <= n; i++ {
			o := b.o
			o.Bucket = openBucket(t, filepath.Join(copies, fmt.Sprintf("%03d", i)))
			l, err := link.New(o)
			if err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
			for id, from := range put {
				h, err := l.Outbox().Holds(id)
				if err != nil {
					t.Fatal(err)
				}
				if must := i >= from && i <= acked[id]; must && !h {
					t.Errorf("at commit %d of %d, an entry put by %d and acknowledged after %d is lost", i, n, from, acked[id])
				}
			}
		}
	})
}

// snapshots calls a function after each commit.
type snapshots struct {
	bucket
	mu        *sync.Mutex
	committed func()
}

func (s snapshots) Update(fn func(*bolt.Bucket) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.bucket.Update(fn)
	s.committed()
	return err
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x02{}"))
	f.Add(link.EncodeEntry("01K5V9AZ00000000000000000X", []byte("picture")))
	f.Fuzz(func(t *testing.T, raw []byte) { link.DecodeEntry(raw) })
}

func FuzzPacketGuard(f *testing.F) {
	f.Add([]byte{0xd0, 0x00, 0x30, 0x03, 0, 1, 'a'}, 1)
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x7f}, 2)
	f.Add([]byte{0x90, 0x03, 0, 1, 1, 0x90, 0x04, 0, 1, 1, 1}, 3)
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		whole, cut := link.Follow(raw), error(nil)
		var pieces [][]byte
		for rest := raw; len(rest) > 0; {
			n := min(len(rest), max(1, step%7))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if cut = link.Follow(pieces...); (whole == nil) != (cut == nil) {
			t.Errorf("in one piece %v, in pieces %v", whole, cut)
		}
	})
}
