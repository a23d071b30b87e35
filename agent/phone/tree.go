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

// Tree returns the elements of the window in front as the phone's own dumper
// writes them, from the XML declaration to </hierarchy>. The dumper waits until
// the screen has rested for a second, at most for ten.
//
// Each attempt writes a file of its own, so that the tree of an earlier screen
// is never read. A screen that does not rest is dumped in compressed form, and a
// phone that cannot write the file prints the tree instead. Tree makes up to
// five attempts within Options.TreeTimeout and fails with the last error:
// ErrNotIdle, ErrNoRoot, ErrNoDump, ErrTruncated or ErrTooLarge.
func (p *Phone) Tree(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.TreeTimeout)
	defer cancel()
	var (
		last            error
		compressed, tty bool
		dump            []byte
	)
	for attempt := range treeAttempts {
		if attempt > 0 {
			if err := pause(ctx, treePause); err != nil {
				break
			}
		}
		var err error
		if tty {
			dump, err = p.treeByTerminal(ctx, compressed)
		} else {
			dump, err = p.treeByFile(ctx, compressed)
		}
		if err == nil {
			return dump, nil
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
				return nil, fmt.Errorf("read element tree: %w", err) // each attempt takes ten seconds
			}
			compressed = true
		case errors.Is(err, ErrNoRoot):
		case errors.Is(err, ErrNoDump), errors.Is(err, ErrTruncated):
			tty = !tty
		default:
			return nil, fmt.Errorf("read element tree: %w", err)
		}
	}
	return nil, fmt.Errorf("read element tree: %w", last)
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

// cutTree returns b up to the end of the hierarchy.
func cutTree(b []byte) ([]byte, error) {
	end := bytes.LastIndex(b, treeEnd)
	if end >= 0 {
		return b[: end+len(treeEnd) : end+len(treeEnd)], nil
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
