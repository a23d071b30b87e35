package perception

import (
	"cmp"
	"context"
	"errors"
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
	Timeout time.Duration    // of a whole observation with its wait for others, 40 s if zero
	Now     func() time.Time // time.Now if nil
}

// Want says what an observation needs beyond the elements.
type Want struct {
	Image       bool
	ImageIfThin bool // an image if the elements cannot be read, or the app draws itself
}

// Observer observes one phone, one observation after the other.
type Observer struct {
	*eye
	latest atomic.Uint64 // the generation that this observer began last
}

// eye looks at one phone for all its observers.
type eye struct {
	source  Source
	timeout time.Duration
	now     func() time.Time
	count   atomic.Uint64 // generations begun
	turn    chan struct{} // holds one token, which an observation has while it lasts
}

// NewObserver returns an observer of one phone.
func NewObserver(source Source, o Options) *Observer {
	e := &eye{source: source, timeout: cmp.Or(o.Timeout, 40*time.Second), now: o.Now, turn: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	if e.now == nil {
		e.now = time.Now
	}
	return &Observer{eye: e}
}

// View returns another observer of the same phone, for somebody who looks
// besides the first. They wait for each other in the order that they ask, so
// that a phone never makes two dumps at once. A scene is out of date when its
// own observer looks again, not when another one does; no two scenes of a phone
// have the same generation.
func (o *Observer) View() *Observer { return &Observer{eye: o.eye} }

// Generation returns the number of this observer's observation begun last, 0
// before the first.
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
	generation := o.count.Add(1)
	o.latest.Store(generation)

	r := o.read(ctx, want)
	if r.treeErr != nil && (r.image == nil || ctx.Err() != nil) {
		return nil, fmt.Errorf("observe screen %d: %w", generation, r.treeErr)
	}
	s := r.scene()
	if r.tree != nil {
		r.tree.release()
	}
	s.Generation, s.latest, s.At = generation, &o.latest, o.now()
	return s, nil
}

// reading is what one look at the phone gave.
type reading struct {
	tree    *tree
	treeErr error
	image   *frame.Picture
	secure  bool // the image is black, and not because the phone is asleep
	state   phone.State
	parts   []Part
}

// read asks the phone for everything. The tree comes first because the phone
// waits for the screen to rest before it gives it; the other parts, read
// together after it, then show the same screen. If the app in front is another
// one than the tree's, the screen changed in between and is read once more.
func (e *eye) read(ctx context.Context, want Want) reading {
	r := e.readOnce(ctx, want)
	if r.treeErr == nil && !r.misses(PartFocus) && !r.tree.shows(r.state.Focus.Package) && ctx.Err() == nil {
		r.tree.release()
		return e.readOnce(ctx, want) // if it fails, the first tree is of a screen that is gone
	}
	return r
}

func (e *eye) readOnce(ctx context.Context, want Want) reading {
	var r reading
	raw, err := e.source.Tree(ctx)
	if err == nil {
		r.tree, err = parseDump(raw)
	}
	r.treeErr = err
	treeAt := e.now()
	picture := want.Image || want.ImageIfThin && r.thin()
	if err != nil && !picture {
		return r
	}

	var (
		wg               sync.WaitGroup
		imageErr         error
		stateAt, imageAt time.Time
	)
	wg.Go(func() { r.state, stateAt = e.source.State(ctx), e.now() })
	if picture {
		wg.Go(func() {
			r.image, imageErr = e.source.Screenshot(ctx)
			imageAt = e.now()
		})
	}
	wg.Wait()
	if r.image != nil && r.image.Black {
		r.secure = r.state.LockErr != nil || r.state.Lock.Awake
		if r.treeErr == nil { // there are elements to be seen
			r.image, imageErr = nil, errBlack
		}
	}
	r.parts = []Part{
		{PartElements, treeAt, r.treeErr},
		{PartFocus, stateAt, r.state.FocusErr},
		{PartDisplay, stateAt, r.state.DisplayErr},
		{PartKeyboard, stateAt, r.state.KeyboardErr},
	}
	if picture {
		r.parts = append(r.parts, Part{PartImage, imageAt, imageErr})
	}
	r.parts = append(r.parts, Part{PartWindows, stateAt, r.state.WindowsErr}, Part{PartLock, stateAt, r.state.LockErr})
	return r
}

// errNotYet stands for parts that are read after the tree.
var errNotYet = errors.New("not read yet")

// errBlack is why a picture counts as missing that shows nothing.
var errBlack = errors.New("the picture is black")

// thin reports whether the tree alone, of which the size of the screen is not
// known yet, leaves most of it unsaid.
func (r reading) thin() bool {
	if r.treeErr != nil {
		return true
	}
	alone := reading{tree: r.tree, parts: []Part{{Name: PartFocus, Err: errNotYet}, {Name: PartDisplay, Err: errNotYet}}}
	return alone.scene().NoTree != ""
}
