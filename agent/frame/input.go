package frame

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// input is the stream of a phone, read with bounds on its time, and the set in
// which it becomes a picture. The set is the input's between reads; a read that
// lasts too long loses it to the pool at once, even if it cannot be ended.
type input struct {
	r       io.Reader
	pool    *pool
	options Options
	timer   *time.Timer // runs during a read
	total   *time.Timer // runs from when the set was taken
	watch   func() bool // ends the watch over the context

	mu      sync.Mutex // guards the fields below
	reading bool
	since   time.Time     // when the read began
	limit   time.Duration // of the read
	fault   error         // why nothing is read any more
	set     *set
}

// errOver is the fault of an input that is closed.
var errOver = errors.New("the stream was read already")

// open begins to watch over r until close. If r is an io.Closer it is closed when
// it stalls or ctx ends, so that a read returns.
func open(ctx context.Context, p *pool, r io.Reader, o Options) *input {
	in := &input{r: r, pool: p, options: o}
	in.timer = time.AfterFunc(time.Hour, in.late)
	in.timer.Stop()
	in.total = time.AfterFunc(time.Hour, func() {
		in.stop(fmt.Errorf("the picture is not there after %s: %w", o.Total, ErrStalled))
	})
	in.total.Stop()
	in.watch = context.AfterFunc(ctx, func() { in.stop(ctx.Err()) })
	return in
}

// take gets a set. It waits until ctx ends; meanwhile nothing is read.
func (in *input) take(ctx context.Context) (*set, error) {
	s, err := in.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.fault != nil {
		in.pool.give(s)
		return nil, in.fault
	}
	in.set = s
	in.total.Reset(in.options.Total)
	return s, nil
}

// held fails if the set is no longer the input's. It is asked after each read
// that may have gone through a buffer or a decompressor.
func (in *input) held() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fault
}

// Read implements io.Reader. Until a set is held a read may last as long as the
// whole: a phone needs time before it sends the first byte.
func (in *input) Read(p []byte) (int, error) {
	in.mu.Lock()
	if in.fault != nil {
		defer in.mu.Unlock()
		return 0, in.fault
	}
	in.limit = in.options.Total
	if in.set != nil {
		in.limit = min(in.limit, in.options.Stall)
	}
	in.reading, in.since = true, time.Now()
	in.timer.Reset(in.limit)
	in.mu.Unlock()

	n, err := in.r.Read(p)

	in.timer.Stop()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.reading = false
	if in.fault != nil {
		return 0, in.fault
	}
	return n, err
}

// late is called when a read has lasted too long.
func (in *input) late() {
	in.mu.Lock()
	limit := in.limit
	late := in.reading && time.Since(in.since) >= limit // not a later read
	in.mu.Unlock()
	if late {
		in.stop(fmt.Errorf("nothing came for %s: %w", limit, ErrStalled))
	}
}

// stop makes all further reads fail. A read in progress loses the set.
func (in *input) stop(err error) {
	in.mu.Lock()
	if in.fault != nil {
		in.mu.Unlock()
		return
	}
	in.fault = err
	var s *set
	if in.reading {
		s, in.set = in.set, nil
	}
	in.mu.Unlock()
	if s != nil {
		in.pool.give(s)
	}
	if c, ok := in.r.(io.Closer); ok {
		c.Close()
	}
}

// close gives the set back. r stays open.
func (in *input) close() {
	in.watch()
	in.timer.Stop()
	in.total.Stop()
	in.mu.Lock()
	s := in.set
	in.set = nil
	if in.fault == nil {
		in.fault = errOver
	}
	in.mu.Unlock()
	if s != nil {
		in.pool.give(s)
	}
}

// Bytes that are read at once. A chunk has room for three rows of the widest
// screen.
const (
	chunkBytes = 128 << 10
	packBytes  = 32 << 10 // compressed
)

// scratch is what a stream is read with. It may be in use while a read blocks,
// so it does not belong to a set.
type scratch struct {
	rows   buffer        // pixels
	packed *bufio.Reader // of what is compressed
	gunzip decompressor
	unzlib decompressor
	line   [2][]byte // rows of a PNG
}

var scratches = sync.Pool{New: func() any {
	return &scratch{rows: buffer{bytes: make([]byte, chunkBytes)}, packed: bufio.NewReaderSize(nil, packBytes)}
}}

// reset lets go of the stream.
func (s *scratch) reset() {
	s.rows.reset(nil)
	s.packed.Reset(nil)
}

// buffer holds a part of a stream.
type buffer struct {
	r        io.Reader
	bytes    []byte
	from, to int
}

func (b *buffer) reset(r io.Reader) { b.r, b.from, b.to = r, 0, 0 }

// need reads until n bytes are there, n being at most the buffer's size. It fails
// with what ended the stream; what was there before is still there.
func (b *buffer) need(n int) error {
	if b.from+n > len(b.bytes) {
		b.to = copy(b.bytes, b.bytes[b.from:b.to])
		b.from = 0
	}
	for empty := 0; b.to-b.from < n; {
		k, err := b.r.Read(b.bytes[b.to:])
		b.to += k
		switch {
		case b.to-b.from >= n:
		case err != nil:
			return err
		case k > 0:
			empty = 0
		default:
			if empty++; empty > 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// rest is what is there.
func (b *buffer) rest() []byte { return b.bytes[b.from:b.to] }

func (b *buffer) skip(n int) { b.from += n }

// failed turns what ended a stream into an error of this package.
func failed(err error, what string) error {
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%s: %w", what, ErrTruncated)
	case corrupt(err):
		return fmt.Errorf("%s: %v: %w", what, err, ErrMalformed)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// excerpt is the beginning of what came instead of a picture.
func excerpt(b []byte) []byte { return slices.Clip(b[:min(len(b), 60)]) }
