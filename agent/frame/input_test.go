package frame

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stalling sends the beginning of a stream and then nothing until it is closed.
func stalling(b []byte) io.ReadCloser {
	r, w := io.Pipe()
	go func() { _, _ = w.Write(b) }()
	return r
}

// deaf sends the beginning of a stream and then nothing, whatever is done to it,
// until the test lets it go.
type deaf struct {
	bytes.Reader
	release chan struct{}
}

func (d *deaf) Read(p []byte) (int, error) {
	if d.Len() == 0 {
		<-d.release
		return 0, io.EOF
	}
	return d.Reader.Read(p)
}

// trickle sends a byte a second.
type trickle struct{ io.Reader }

func (t trickle) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return t.Reader.Read(p[:min(len(p), 1)])
}

func TestAStalledStreamFails(t *testing.T) {
	img := screenOf(108, 240)
	for name, c := range map[string]struct {
		read   func(*pool) reader
		stream []byte
	}{
		"raw":  {func(p *pool) reader { return p.readRaw }, rawOf(img, longHeader)},
		"gzip": {func(p *pool) reader { return p.readGzip }, gzipOf(t, rawOf(img, longHeader))},
		"png":  {func(p *pool) reader { return p.readPNG }, pngOf(t, img)},
		"jpeg": {func(p *pool) reader { return p.readJPEG }, jpegOf(t, img)},
	} {
		for _, share := range []int{0, 10, 50, 99} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPool(1)
					start := time.Now()
					_, err := c.read(p)(t.Context(), stalling(c.stream[:len(c.stream)*share/100]), Options{})
					want := DefaultStall
					if share == 0 { // it has no set yet
						want = DefaultTotal
					}
					if !errors.Is(err, ErrStalled) || time.Since(start) != want {
						t.Errorf("after %d %%: %v after %s", share, err, time.Since(start))
					}
					if len(p.free) != 1 {
						t.Error("the buffer set is lost")
					}
				})
			})
		}
	}
}

func TestATrickleFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		_, err := p.readRaw(t.Context(), trickle{bytes.NewReader(rawOf(screenOf(108, 240), longHeader))}, Options{})
		if !errors.Is(err, ErrStalled) || len(p.free) != 1 {
			t.Errorf("got %v, %d sets", err, len(p.free))
		}
	})
}

// TestTheSetOfADeafReaderIsFreeAtOnce: the read cannot be ended, the set is given
// back all the same.
func TestTheSetOfADeafReaderIsFreeAtOnce(t *testing.T) {
	stream := rawOf(screenOf(108, 240), longHeader)
	for name, read := range map[string]func(*pool, io.Reader) (*Picture, error){
		"raw":  func(p *pool, r io.Reader) (*Picture, error) { return p.readRaw(context.Background(), r, Options{}) },
		"gzip": func(p *pool, r io.Reader) (*Picture, error) { return p.readGzip(context.Background(), r, Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := stream
				if name == "gzip" {
					b = gzipOf(t, stream)
				}
				p := newPool(1)
				d := &deaf{Reader: *bytes.NewReader(b[:len(b)/2]), release: make(chan struct{})}
				result := make(chan error)
				go func() {
					_, err := read(p, d)
					result <- err
				}()
				time.Sleep(DefaultStall + time.Millisecond)
				synctest.Wait()
				if len(p.free) != 1 {
					t.Error("the set is held by a reader that waits")
				}
				if _, err := read(p, bytes.NewReader(b)); err != nil {
					t.Errorf("another stream: %v", err)
				}
				close(d.release)
				if err := <-result; !errors.Is(err, ErrStalled) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestTheContextEndsAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		stream := rawOf(screenOf(108, 240), longHeader)
		for _, n := range []int{0, 5, 100, len(stream) / 2} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := p.readRaw(ctx, stalling(stream[:n]), Options{})
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrBusy) || len(p.free) != 1 {
				t.Errorf("after %d bytes: %v, %d sets", n, err, len(p.free))
			}
			cancel()
		}
	})
}

func TestABusyPoolIsNoFaultOfTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1)
		if _, err := p.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := bytes.NewReader(rawOf(screenOf(108, 240), longHeader))
		if _, err := p.readRaw(ctx, r, Options{}); !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestFortyReadersOfWhichMostStall: the others' pictures do not wait for them.
func TestFortyReadersOfWhichMostStall(t *testing.T) {
	stream := rawOf(screenOf(216, 480), longHeader)
	synctest.Test(t, func(t *testing.T) {
		p := newPool(3)
		var wg sync.WaitGroup
		var whole, stalled, most, now atomic.Int32
		start := time.Now()
		for i := range 40 {
			wg.Go(func() {
				if i%4 != 0 {
					_, err := p.readRaw(t.Context(), stalling(stream[:len(stream)/(i%3+2)]), Options{})
					if errors.Is(err, ErrStalled) {
						stalled.Add(1)
					}
					return
				}
				for range 5 {
					most.Store(max(most.Load(), now.Add(1)))
					if _, err := p.readRaw(t.Context(), bytes.NewReader(stream), Options{}); err == nil {
						whole.Add(1)
					}
					now.Add(-1)
				}
			})
		}
		wg.Wait()
		// Thirty stalled streams hold three sets for two seconds each.
		if took := time.Since(start); whole.Load() != 50 || stalled.Load() != 30 || took > 10*DefaultStall+time.Second {
			t.Errorf("%d pictures, %d stalled, after %s", whole.Load(), stalled.Load(), took)
		}
	})
}

// TestMemoryOfFortyReaders: the heap grows by the sets and what streams are read
// with, not by screens.
func TestMemoryOfFortyReaders(t *testing.T) {
	stream := rawOf(screenOf(540, 1200), longHeader) // 2.6 MB, forty of which would show
	read := func(n int) {
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				for range n {
					if _, err := ReadRaw(t.Context(), bytes.NewReader(stream), Options{Width: 360}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	read(1)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-stop:
				peak <- most
				return
			case <-time.After(10 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	read(2)
	close(stop)
	most := <-peak
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / 80
	t.Logf("%d bytes a picture, the heap grew by %d", each, int64(most)-int64(before.HeapAlloc))
	if each > 400<<10 {
		t.Errorf("%d bytes are allocated for a picture", each)
	}
	if grown := int64(most) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}
