package screen

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock is a test's time: it moves only when told.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, time.March, 9, 9, 41, 0, 0, time.UTC)}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// driver works an Engine as a controller would: it sees Tree and taps points.
type driver struct {
	*testing.T
	*Engine
	clock *clock
}

func drive(t *testing.T, c Config) *driver {
	t.Helper()
	d := &driver{T: t, clock: newClock()}
	c.Clock = d.clock.Now
	if c.Width == 0 {
		c.Width, c.Height, c.Density = 720, 1600, 320
	}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	d.Engine = e
	return d
}

func (d *driver) open(pkg string) {
	d.Helper()
	if err := d.Launch(pkg); err != nil {
		d.Fatal(err)
	}
	d.settle()
}

func (d *driver) wait(t time.Duration) { d.clock.advance(t) }

// settle waits until nothing moves, ten seconds at most.
func (d *driver) settle() {
	d.Helper()
	for range 200 {
		if d.Idle() {
			return
		}
		d.wait(50 * time.Millisecond)
	}
	d.Fatal("the screen does not settle")
}

// nodes flattens the tree, parents first.
func nodes(n *Node) []*Node {
	if n == nil {
		return nil
	}
	out := []*Node{n}
	for _, c := range n.Children {
		out = append(out, nodes(c)...)
	}
	return out
}

// all returns the nodes with an id (its last part), a text or a description.
func (d *driver) all(what string) []*Node {
	return slices.DeleteFunc(nodes(d.Tree()), func(n *Node) bool {
		_, id, _ := strings.Cut(n.ResourceID, ":id/")
		return what != id && what != n.Text && what != n.Desc
	})
}

func (d *driver) find(what string) *Node {
	d.Helper()
	found := d.all(what)
	if len(found) == 0 {
		d.Fatalf("nothing on the screen is %q; there is %s", what, d.summary())
	}
	return found[0]
}

func (d *driver) has(what string) bool { return len(d.all(what)) > 0 }

func (d *driver) summary() string {
	var out []string
	for _, n := range nodes(d.Tree()) {
		if s := strings.Join([]string{n.ResourceID, n.Text, n.Desc}, "|"); s != "||" {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func centre(n *Node) (x, y int) {
	c := n.Bounds.Min.Add(n.Bounds.Max).Div(2)
	return c.X, c.Y
}

func (d *driver) tap(what string) {
	d.Helper()
	d.Tap(centre(d.find(what)))
	d.settle()
}

func (d *driver) typeText(s string) {
	d.Helper()
	if err := d.Type(s); err != nil {
		d.Fatal(err)
	}
}

func (d *driver) wantJournal(want ...string) {
	d.Helper()
	if got := d.Journal(); !slices.Equal(got, want) {
		d.Errorf("journal is %q, want %q", got, want)
	}
}
