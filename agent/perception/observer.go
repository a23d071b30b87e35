package perception

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/agent/frame"
	"phonerack/agent/phone"
)

// Source is what an Observer needs of a phone; *phone.Phone implements it.
type Source interface {
	Tree(ctx context.Context) ([]byte, error)
	Screenshot(ctx context.Context) (*frame.Picture, error)
	State(ctx context.Context) phone.State
}

// Options of an Observer; the zero value is usable.
type Options struct {
	Timeout time.Duration    // of a whole observation, 40 s if zero
	Now     func() time.Time // time.Now if nil
}

// Want says what an observation needs beyond the elements.
type Want struct {
	Image bool
}

// Observer observes one phone, one observation after the other.
type Observer struct {
	source  Source
	timeout time.Duration
	now     func() time.Time
	latest  atomic.Uint64 // the generation begun last
	turn    chan struct{} // holds one token, which an observation has while it lasts
}

// NewObserver returns an observer of one phone.
func NewObserver(source Source, o Options) *Observer {
	ob := &Observer{source: source, timeout: cmp.Or(o.Timeout, 40*time.Second), now: o.Now, turn: make(chan struct{}, 1)}
	ob.turn <- struct{}{}
	if ob.now == nil {
		ob.now = time.Now
	}
	return ob
}

// Generation returns the number of the observation begun last, 0 before the
// first.
func (o *Observer) Generation() uint64 { return o.latest.Load() }

// Observe reads the screen. From its beginning on the previous scene is out of
// date, whatever comes of it. It fails if the elements cannot be read, unless an
// image was wanted and is there: then the scene has no elements. Every other
// part that fails is named in Missing. Observe blocks until the phone has
// answered, ctx ends or the observer's timeout is over.
func (o *Observer) Observe(ctx context.Context, want Want) (*Scene, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	select {
	case <-o.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("observe: %w", ctx.Err())
	}
	defer func() { o.turn <- struct{}{} }()
	generation := o.latest.Add(1)

	r := o.read(ctx, want)
	if r.treeErr != nil && (r.image == nil || ctx.Err() != nil) {
		return nil, fmt.Errorf("observe screen %d: %w", generation, r.treeErr)
	}
	s := r.scene()
	s.Generation, s.latest, s.At = generation, &o.latest, o.now()
	return s, nil
}

// reading is what one look at the phone gave.
type reading struct {
	tree    *tree
	treeErr error
	image   *frame.Picture
	state   phone.State
	missing map[string]bool
}

// read asks the phone for everything. The tree comes first because the phone
// waits for the screen to rest before it gives it; the other parts, read
// together after it, then show the same screen. If the app in front is another
// one than the tree's, the screen changed in between and is read once more.
func (o *Observer) read(ctx context.Context, want Want) reading {
	r := o.readOnce(ctx, want)
	if r.treeErr == nil && !r.missing[PartFocus] && r.tree.pkg() != "" && r.tree.pkg() != r.state.Focus.Package && ctx.Err() == nil {
		if again := o.readOnce(ctx, want); again.treeErr == nil {
			return again
		}
	}
	return r
}

func (o *Observer) readOnce(ctx context.Context, want Want) reading {
	var r reading
	raw, err := o.source.Tree(ctx)
	if err == nil {
		r.tree, err = parseDump(raw)
	}
	r.treeErr = err
	if err != nil && !want.Image {
		return r
	}

	var (
		wg       sync.WaitGroup
		imageErr error
	)
	wg.Go(func() { r.state = o.source.State(ctx) })
	if want.Image {
		wg.Go(func() { r.image, imageErr = o.source.Screenshot(ctx) })
	}
	wg.Wait()
	missing := map[string]bool{
		PartElements: err != nil, PartMore: err == nil && r.tree.cut, PartFocus: r.state.FocusErr != nil,
		PartDisplay: r.state.DisplayErr != nil, PartKeyboard: r.state.KeyboardErr != nil, PartImage: imageErr != nil,
	}
	if r.image != nil && r.treeErr == nil && r.image.Black { // a window that forbids pictures: there are elements to be seen
		r.image, missing[PartImage] = nil, true
	}
	r.missing = missing
	return r
}
