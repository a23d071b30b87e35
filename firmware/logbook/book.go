package logbook

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of a Book. The zero value has the defaults.
type Bounds struct {
	Records int // 0 is 2000
	Bytes   int // of all lines; 0 is 512 KiB
}

const (
	defaultRecords = 2000
	defaultBytes   = 512 << 10
	maxLine        = 4 << 10 // bytes; what is longer is cut
	maxParts       = 200     // whose last lines are kept
)

// PartKey is the attribute that says which part of the program a record is of.
const PartKey = "part"

// Record is a line of the log.
type Record struct {
	Number uint64     `json:"number"` // counts up from 1 with each record of this process
	Time   time.Time  `json:"time"`   // by the wall clock, which may be wrong
	Level  slog.Level `json:"level"`
	Line   string     `json:"line"` // message and attributes as slog.TextHandler writes them, without time and level
}

// A Book keeps the newest records. It is safe for concurrent use.
type Book struct {
	bounds Bounds

	mu      sync.Mutex
	records []Record          // guarded by mu, as is what follows; the oldest first
	bytes   int               // of their lines
	last    uint64            // number of the newest
	more    chan struct{}     // closed at the next record, and replaced
	parts   map[string]string // the newest line of each part
}

// New returns an empty book.
func New(b Bounds) *Book {
	if b.Records <= 0 {
		b.Records = defaultRecords
	}
	if b.Bytes <= 0 {
		b.Bytes = defaultBytes
	}
	return &Book{bounds: b, more: make(chan struct{}), parts: map[string]string{}}
}

// Handler returns a handler that writes into the book. Level and ReplaceAttr of the options count.
func (b *Book) Handler(o *slog.HandlerOptions) slog.Handler {
	return newLines(o, func(_ context.Context, r slog.Record, part, line string) error {
		b.add(r.Time, r.Level, part, line)
		return nil
	})
}

func (b *Book) add(at time.Time, level slog.Level, part, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.parts[part]; part != "" && (known || len(b.parts) < maxParts) {
		b.parts[part] = line
	}
	b.last++
	b.records = append(b.records, Record{b.last, at, level, line})
	b.bytes += len(line)
	gone := 0
	for len(b.records)-gone > b.bounds.Records || b.bytes > b.bounds.Bytes && len(b.records)-gone > 1 {
		b.bytes -= len(b.records[gone].Line)
		b.records[gone] = Record{}
		gone++
	}
	b.records = b.records[gone:] // append moves them to a new array now and then
	close(b.more)
	b.more = make(chan struct{})
}

// Since returns the records after a number that are at least of the level, at most so many (0 for all), the oldest first.
// next is what to ask with the next time, missed how many the book had dropped before they were asked for, and more is
// closed when there are new ones. A number from another process of rackd, larger than any here, begins anew.
func (b *Book) Since(number uint64, level slog.Level, most int) (records []Record, next, missed uint64, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number > b.last {
		number = 0
	}
	if first := b.last + 1 - uint64(len(b.records)); number+1 < first {
		missed = first - number - 1
		number = first - 1
	}
	next = number
	for _, r := range b.records[uint64(len(b.records))-(b.last-number):] {
		if most > 0 && len(records) == most {
			break
		}
		if next = r.Number; r.Level >= level {
			records = append(records, r)
		}
	}
	return records, next, missed, b.more
}

// Newest returns the newest records that came after a number, at most so many, the oldest first.
func (b *Book) Newest(after uint64, most int) []Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if after > b.last {
		after = 0
	}
	n := min(len(b.records), most, int(min(b.last-after, uint64(len(b.records)))))
	return slices.Clone(b.records[len(b.records)-n:])
}

// More is closed at the next record.
func (b *Book) More() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.more
}

// Of is the newest line of a part, however old it is; "" if there is none.
func (b *Book) Of(part string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[part]
}

// lines is a handler that makes a line of each record.
type lines struct {
	level  slog.Leveler
	part   string       // that the logger was given by With, outside of groups
	group  bool         // attributes are in a group
	format slog.Handler // writes into shared.buf
	take   func(ctx context.Context, r slog.Record, part, line string) error
	shared *sharedBuffer // of all handlers that were derived from one
}

type sharedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func newLines(o *slog.HandlerOptions, take func(context.Context, slog.Record, string, string) error) *lines {
	if o == nil {
		o = &slog.HandlerOptions{}
	}
	level := o.Level
	if level == nil {
		level = slog.LevelInfo
	}
	shared := &sharedBuffer{}
	format := slog.NewTextHandler(&shared.buf, &slog.HandlerOptions{
		AddSource: o.AddSource, Level: slog.Level(-1 << 30),
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			if o.ReplaceAttr != nil {
				return o.ReplaceAttr(groups, a)
			}
			return a
		},
	})
	return &lines{level: level, format: format, take: take, shared: shared}
}

// Enabled implements slog.Handler.
func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level.Level() }

// Handle implements slog.Handler.
func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	line, err := l.line(ctx, r)
	if err != nil {
		return err
	}
	part := l.part
	if !l.group {
		r.Attrs(func(a slog.Attr) bool {
			part = partOf(a, part)
			return true
		})
	}
	return l.take(ctx, r, part, line)
}

// partOf is the part that an attribute names, else what was known before.
func partOf(a slog.Attr, before string) string {
	if a.Key == PartKey && a.Value.Kind() == slog.KindString {
		return a.Value.String()
	}
	return before
}

func (l *lines) line(ctx context.Context, r slog.Record) (string, error) {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	defer l.shared.buf.Reset()
	if err := l.format.Handle(ctx, r); err != nil {
		return "", err
	}
	return cut(strings.TrimSuffix(l.shared.buf.String(), "\n")), nil
}

// WithAttrs implements slog.Handler.
func (l *lines) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *l
	derived.format = l.format.WithAttrs(attrs)
	if !l.group {
		for _, a := range attrs {
			derived.part = partOf(a, derived.part)
		}
	}
	return &derived
}

// WithGroup implements slog.Handler.
func (l *lines) WithGroup(name string) slog.Handler {
	derived := *l
	derived.format = l.format.WithGroup(name)
	derived.group = true
	return &derived
}

func cut(line string) string {
	if len(line) <= maxLine {
		return line
	}
	at := maxLine
	for !utf8.RuneStart(line[at]) {
		at--
	}
	return strings.Clone(line[:at]) + "…"
}
