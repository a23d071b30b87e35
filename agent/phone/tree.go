package phone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"
)

// Bounds of Tree.
const (
	maxTree      = 16 << 20 // bytes
	treeAttempts = 5
	treePause    = 300 * time.Millisecond
)

// statusLine is what the dumper prints when it has written the tree. Old
// versions misspell the word.
var statusLine = regexp.MustCompile(`UI hier(?:chary|archy) dumped to: *(\S+)`)

var (
	treeStart = regexp.MustCompile(`<\?xml|<hierarchy`)
	treeEnd   = []byte("</hierarchy>")
	treeEmpty = regexp.MustCompile(`<hierarchy[^<>]*/>\s*$`)
)

// treeNode is the beginning of a node with the package that it belongs to, and
// treeElement of any element. Helpers name elements by their class.
var (
	treeNode    = regexp.MustCompile(`<[a-zA-Z][\w.$]*\s[^<>]*\bpackage="[a-zA-Z]\w*(?:\.\w+)*"`)
	treeElement = regexp.MustCompile(`<[a-zA-Z][\w.$]*[\s/>]`)
)

// maxBeforeNode bounds what may stand before the first node, in bytes.
const maxBeforeNode = 64 << 10

// Tree returns the elements of the window in front, from the XML declaration to
// </hierarchy>. One tree is read at a time.
//
// While the helper runs its tree is taken, in tens of milliseconds. If it fails
// it is stopped and the phone's own dumper is used, also for a while after
// somebody has started the helper again. The dumper waits until the screen has
// rested for a second, at most for ten.
//
// Each attempt of the dumper writes a file of its own, so that the tree of an
// earlier screen is never read. A screen that does not rest is dumped in
// compressed form, also for the next minute, and a phone that cannot write the
// file prints the tree instead. Tree makes up to five attempts within
// Options.TreeTimeout and fails with the last error: ErrNotIdle (see
// Controls.StopAnimations), ErrNoRoot, ErrNoDump, ErrTaken, ErrTruncated or
// ErrTooLarge.
func (p *Phone) Tree(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.TreeTimeout)
	defer cancel()
	var tree []byte
	err := p.Still(ctx, func(ctx context.Context) (err error) {
		if tree, err = p.helperTree(ctx); tree == nil && err == nil {
			tree, err = p.dump(ctx)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read element tree: %w", err)
	}
	return tree, nil
}

// Still runs do while no element tree is being read. Whoever starts or stops
// helper apps does so here: a phone lets one program at a time read its screen.
func (p *Phone) Still(ctx context.Context, do func(context.Context) error) error {
	select {
	case <-p.looking:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { p.looking <- struct{}{} }()
	return do(ctx)
}

// dump has the phone's own dumper give the tree.
func (p *Phone) dump(ctx context.Context) ([]byte, error) {
	var last error
	stopped := false
	compressed, terminal := p.dumpWay()
	for attempt := range treeAttempts {
		if attempt > 0 && pause(ctx, treePause) != nil {
			break
		}
		by := p.treeByFile
		if terminal {
			by = p.treeByTerminal
		}
		tree, err := by(ctx, compressed)
		if err == nil {
			p.dumped(compressed, terminal)
			return tree, nil
		}
		if last == nil || !ended(err) {
			last = err // why the dumper failed says more than that time is over
		}
		if ctx.Err() != nil {
			break
		}
		switch {
		case errors.Is(err, ErrNotIdle):
			if compressed {
				return nil, err // each attempt takes ten seconds
			}
			compressed = true
		case errors.Is(err, ErrNoRoot):
		case errors.Is(err, ErrTaken) && p.options.Helpers != nil && !stopped:
			stopped = true // an earlier connection may have left it running
			if err := p.stopHelper(ctx, p.options.Helpers); err != nil {
				return nil, err
			}
		case errors.Is(err, ErrNoDump), errors.Is(err, ErrTruncated), errors.Is(err, ErrMalformed):
			terminal = !terminal
		default:
			return nil, err
		}
	}
	return nil, last
}

// movingTime is for how long a screen that did not rest is dumped compressed at
// once.
const movingTime = time.Minute

// dumpWay says how the dumper is asked first.
func (p *Phone) dumpWay() (compressed, terminal bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.moving), p.ways.Tree == TreeTerminal
}

// dumped keeps how the dumper gave its tree.
func (p *Phone) dumped(compressed, terminal bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ways.Tree = TreeFile
	if terminal {
		p.ways.Tree = TreeTerminal
	}
	if compressed && !time.Now().Before(p.moving) {
		p.moving = time.Now().Add(movingTime)
	}
}

func dumpCommand(compressed bool, target string) string {
	if compressed {
		return "uiautomator dump --compressed " + target
	}
	return "uiautomator dump " + target
}

// treeByFile dumps to a new file, prints and removes it, in one round trip.
func (p *Phone) treeByFile(ctx context.Context, compressed bool) ([]byte, error) {
	file := p.stem + "-" + strconv.FormatUint(p.count.Add(1), 10) + ".xml"
	r, err := p.conn.shell(ctx, dumpCommand(compressed, file)+" 2>&1; cat "+file+"; rm -f "+file)
	if err != nil {
		return nil, err
	}
	if len(r.Stdout) > maxTree {
		return nil, fmt.Errorf("more than %d bytes: %w", maxTree, ErrTooLarge)
	}
	start := treeStart.FindIndex(r.Stdout)
	if start == nil {
		return nil, dumpFailure(r.Stdout, r.Stderr)
	}
	if m := statusLine.FindSubmatch(r.Stdout[:start[0]]); m == nil || string(m[1]) != file {
		return nil, dumpFailure(r.Stdout[:start[0]], r.Stderr)
	}
	return cutTree(r.Stdout[start[0]:])
}

// treeByTerminal has the dumper print the tree; the status line follows it.
func (p *Phone) treeByTerminal(ctx context.Context, compressed bool) ([]byte, error) {
	var out []byte
	err := p.conn.stream(ctx, dumpCommand(compressed, "/dev/tty"), func(r io.Reader) (err error) {
		out, err = readBounded(r, maxTree)
		return err
	})
	if err != nil {
		return nil, err
	}
	start := treeStart.FindIndex(out)
	if start == nil {
		return nil, dumpFailure(out, nil)
	}
	tree, err := cutTree(out[start[0]:])
	if err != nil {
		return nil, err
	}
	if rest := out[start[0]+len(tree):]; !statusLine.Match(rest) {
		return nil, fmt.Errorf("no status line after the tree: %w", ErrTruncated)
	}
	return tree, nil
}

// cutTree returns b up to the end of the hierarchy. A tree has at least one node
// that belongs to a package.
func cutTree(b []byte) ([]byte, error) {
	if end := bytes.LastIndex(b, treeEnd); end >= 0 {
		b = b[: end+len(treeEnd) : end+len(treeEnd)]
		head := b[:min(len(b), maxBeforeNode)]
		switch {
		case treeNode.Match(head):
			return b, nil
		case len(treeElement.FindAll(head, 2)) < 2:
			return nil, ErrNoRoot
		}
		return nil, fmt.Errorf("no node of a package: %w", ErrMalformed)
	}
	if treeEmpty.Match(b[:min(len(b), 1024)]) {
		return nil, ErrNoRoot
	}
	return nil, fmt.Errorf("%d bytes without </hierarchy>: %w", len(b), ErrTruncated)
}

// dumpFailure says why there is no tree from what the dumper printed; it prints
// errors with exit code 0, and sometimes nothing at all.
func dumpFailure(out, stderr []byte) error {
	for _, known := range []struct {
		words string
		err   error
	}{
		{"could not get idle state", ErrNotIdle},
		{"null root node", ErrNoRoot},
		{"already registered", ErrTaken},
	} {
		if bytes.Contains(out, []byte(known.words)) || bytes.Contains(stderr, []byte(known.words)) {
			return known.err
		}
	}
	if said := excerpt(out, stderr); said != "" {
		return fmt.Errorf("the phone said %q: %w", said, ErrNoDump)
	}
	return ErrNoDump
}
