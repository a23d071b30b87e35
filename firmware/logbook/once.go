package logbook

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"
)

// maxSources bounds how many sources Once remembers; the ones that spoke longest ago are forgotten.
const maxSources = 4096

// Once returns a handler that leaves out a record which says what the same source said last: the same level and
// attributes. A source is a message together with what its logger was given by With, such as the slot. After again it is
// said once more, with the attribute "repeated" that counts what was left out. Records below Info all pass: who asks for
// them wants each.
func Once(next slog.Handler, again time.Duration) slog.Handler {
	return &once{next: next, shared: &said{again: again, seed: maphash.MakeSeed(), now: map[uint64]*utterance{}}}
}

type once struct {
	next   slog.Handler
	source uint64 // of what With gave
	shared *said
}

// said is what all handlers that were derived from one know.
type said struct {
	again time.Duration
	seed  maphash.Seed

	mu     sync.Mutex
	now    map[uint64]*utterance // guarded by mu, as is before; by source
	before map[uint64]*utterance // was now until that was full
}

// utterance is what a source said last.
type utterance struct {
	words    uint64
	at       time.Time
	repeated int
}

// Enabled implements slog.Handler.
func (o *once) Enabled(ctx context.Context, level slog.Level) bool { return o.next.Enabled(ctx, level) }

// Handle implements slog.Handler.
func (o *once) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return o.next.Handle(ctx, r)
	}
	repeated, pass := o.shared.hear(o.source, r)
	if !pass {
		return nil
	}
	if repeated > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", repeated))
	}
	return o.next.Handle(ctx, r)
}

// hear tells whether a record is to pass, and how many like it did not.
func (s *said) hear(source uint64, r slog.Record) (repeated int, pass bool) {
	source = s.hash(source, r.Message)
	words := s.hash(uint64(r.Level), "")
	r.Attrs(func(a slog.Attr) bool {
		words = s.hash(words, a.Key+"\x00"+a.Value.Resolve().String())
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.remember(source)
	since := r.Time.Sub(u.at)
	if u.words == words && !u.at.IsZero() && since >= 0 && since < s.again {
		u.repeated++
		return 0, false
	}
	if u.words == words {
		repeated = u.repeated
	}
	*u = utterance{words: words, at: r.Time}
	return repeated, true
}

// remember finds or makes the source's utterance; mu is held.
func (s *said) remember(source uint64) *utterance {
	if u := s.now[source]; u != nil {
		return u
	}
	u := s.before[source]
	if u == nil {
		u = &utterance{}
	}
	if len(s.now) >= maxSources/2 {
		s.now, s.before = map[uint64]*utterance{}, s.now
	}
	s.now[source] = u
	return u
}

func (s *said) hash(before uint64, text string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	maphash.WriteComparable(&h, before)
	h.WriteString(text)
	return h.Sum64()
}

// WithAttrs implements slog.Handler.
func (o *once) WithAttrs(attrs []slog.Attr) slog.Handler {
	source := o.source
	for _, a := range attrs {
		source = o.shared.hash(source, a.Key+"\x00"+a.Value.Resolve().String())
	}
	return &once{next: o.next.WithAttrs(attrs), source: source, shared: o.shared}
}

// WithGroup implements slog.Handler.
func (o *once) WithGroup(name string) slog.Handler {
	return &once{next: o.next.WithGroup(name), source: o.shared.hash(o.source, "\x01"+name), shared: o.shared}
}
