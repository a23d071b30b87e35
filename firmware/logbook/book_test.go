package logbook

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// linesOf are the lines of records.
func linesOf(records []Record) string {
	var all []string
	for _, r := range records {
		all = append(all, r.Line)
	}
	return strings.Join(all, "|")
}

func TestAReaderFollowsTheBook(t *testing.T) {
	book := New(Bounds{})
	log := slog.New(book.Handler(nil)).With("slot", 7)
	log.Info("first")
	log.Debug("not asked for")
	log.Warn("second", "err", "a\nb")
	records, next, missed, more := book.Since(0, slog.LevelInfo, 0)
	if got := linesOf(records); got != `msg=first slot=7|msg=second slot=7 err="a\nb"` || next != 2 || missed != 0 || records[1].Level != slog.LevelWarn || records[0].Time.IsZero() {
		t.Errorf("%q, next %d, missed %d", got, next, missed)
	}
	select {
	case <-more:
		t.Error("more, and there is nothing")
	default:
	}
	log.WithGroup("g").Error("third", "x", 1)
	<-more
	if records, next, _, _ = book.Since(next, slog.LevelInfo, 0); linesOf(records) != "msg=third slot=7 g.x=1" || next != 3 {
		t.Errorf("%q, next %d", linesOf(records), next)
	}
	if records, next, _, _ = book.Since(0, slog.LevelWarn, 1); linesOf(records) != `msg=second slot=7 err="a\nb"` || next != 2 {
		t.Errorf("one warning: %q, next %d", linesOf(records), next)
	}
	if records, _, _, _ = book.Since(99, slog.LevelInfo, 0); len(records) != 3 {
		t.Errorf("a number of another process gave %d records", len(records))
	}
}

func TestTheNewestLinesAndThoseOfEachPart(t *testing.T) {
	book := New(Bounds{Records: 4})
	log := slog.New(book.Handler(nil))
	link := log.With("part", "the link")
	more := book.More()
	link.Info("up", "n", 1)
	select {
	case <-more:
	default:
		t.Error("nobody was told of a line")
	}
	log.Warn("a part ended", "part", "bus")
	link.WithGroup("g").Info("in a group", "part", "no part")
	for i := range 3 {
		log.Info("other", "n", i)
	}
	for _, c := range []struct {
		after uint64
		most  int
		want  string
	}{
		{0, 2, "msg=other n=1|msg=other n=2"},
		{0, 9, `msg="in a group" part="the link" g.part="no part"|msg=other n=0|msg=other n=1|msg=other n=2`}, // what the book still has
		{5, 9, "msg=other n=2"},
		{6, 9, ""},
		{99, 1, "msg=other n=2"}, // a number of another process
	} {
		if got := linesOf(book.Newest(c.after, c.most)); got != c.want {
			t.Errorf("%d after %d: %s", c.most, c.after, got)
		}
	}
	for part, want := range map[string]string{"the link": `msg="in a group" part="the link" g.part="no part"`, "bus": `msg="a part ended" part=bus`, "no part": "", "": ""} {
		if got := book.Of(part); got != want {
			t.Errorf("of %q: %s", part, got)
		}
	}
	for i := range 300 {
		log.Info("many", "part", fmt.Sprint("part ", i))
	}
	if first, last := book.Of("part 0"), book.Of("part 299"); first == "" || last != "" {
		t.Errorf("parts are not bounded: %q, %q", first, last)
	}
}

func TestTheBookIsBounded(t *testing.T) {
	for name, b := range map[string]Bounds{"records": {Records: 10}, "bytes": {Bytes: 100}} {
		book := New(b)
		log := slog.New(book.Handler(nil))
		for i := range 1000 {
			log.Info(fmt.Sprintf("n%05d", i)) // a line of 10 bytes
		}
		records, next, missed, _ := book.Since(5, slog.LevelInfo, 0)
		if len(records) != 10 || records[0].Line != "msg=n00990" || next != 1000 || missed != 985 {
			t.Errorf("%s: %d records from %q, next %d, missed %d", name, len(records), records[0].Line, next, missed)
		}
	}
	book := New(Bounds{Bytes: 10})
	slog.New(book.Handler(nil)).Info(strings.Repeat("é", maxLine))
	if records, _, _, _ := book.Since(0, slog.LevelInfo, 0); len(records) != 1 || len(records[0].Line) > maxLine+len("…") || !strings.HasSuffix(records[0].Line, "é…") {
		t.Errorf("a long line: %d records", len(records))
	}
}

func TestWhatReplaceAttrTakesOutIsNowhere(t *testing.T) {
	book := New(Bounds{})
	folder, err := OpenFolder(t.TempDir(), Budget{})
	if err != nil {
		t.Fatal(err)
	}
	level := new(slog.LevelVar)
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "token" {
			return slog.String(a.Key, "redacted")
		}
		return a
	}}
	log := slog.New(slog.NewMultiHandler(book.Handler(options), folder.Handler(options)))
	log.With("token", "hunter2").WithGroup("g").Warn("x", "token", "hunter2")
	if err := folder.Flush(); err != nil {
		t.Fatal(err)
	}
	kept, err := folder.Kept()
	records, _, _, _ := book.Since(0, slog.LevelInfo, 0)
	for _, text := range []string{kept, linesOf(records)} {
		if strings.Contains(text, "hunter2") || strings.Count(text, "redacted") != 2 {
			t.Errorf("%q, %v", text, err)
		}
	}
	level.Set(slog.LevelError)
	log.Warn("too low now")
	if again, _, _, _ := book.Since(0, slog.LevelInfo, 0); len(again) != 1 {
		t.Error("the level did not change")
	}
}

func TestALineIsSaidOnce(t *testing.T) {
	book := New(Bounds{})
	handler := Once(book.Handler(&slog.HandlerOptions{Level: slog.LevelDebug}), time.Hour)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(h slog.Handler, after time.Duration, level slog.Level, message string, args ...any) {
		t.Helper()
		at = at.Add(after)
		r := slog.NewRecord(at, level, message, 0)
		r.Add(args...)
		if err := h.Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	slot7, slot8 := handler.WithAttrs([]slog.Attr{slog.Int("slot", 7)}), handler.WithAttrs([]slog.Attr{slog.Int("slot", 8)})
	for range 100 {
		say(slot7, time.Second, slog.LevelInfo, "poll", "state", "lost")
	}
	say(slot8, 0, slog.LevelInfo, "poll", "state", "lost")
	say(slot7, time.Second, slog.LevelInfo, "poll", "state", "ready") // changes all pass
	say(slot7, time.Second, slog.LevelInfo, "poll", "state", "lost")
	say(slot7, time.Second, slog.LevelWarn, "poll", "state", "lost")
	for range 2 {
		say(slot7, time.Second, slog.LevelWarn, "poll", "state", "lost")
		say(slot7, 0, slog.LevelDebug, "detail")
	}
	say(slot7, time.Hour, slog.LevelWarn, "poll", "state", "lost")
	records, _, _, _ := book.Since(0, slog.LevelDebug, 0)
	want := "msg=poll slot=7 state=lost|msg=poll slot=8 state=lost|msg=poll slot=7 state=ready|msg=poll slot=7 state=lost|msg=poll slot=7 state=lost|" +
		"msg=detail slot=7|msg=detail slot=7|msg=poll slot=7 state=lost repeated=2"
	if got := linesOf(records); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOnceForgetsSources(t *testing.T) {
	o := Once(slog.DiscardHandler, time.Hour).(*once)
	for i := range 3 * maxSources {
		o.shared.hear(0, slog.NewRecord(time.Now(), slog.LevelInfo, fmt.Sprint(i), 0))
	}
	if n := len(o.shared.now) + len(o.shared.before); n > maxSources {
		t.Errorf("%d sources are remembered", n)
	}
}
