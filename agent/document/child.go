package document

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"phonerack/agent/document/internal/protocol"
	"phonerack/sync/wire"
)

// errWall is the cause of a child's end that took too long.
var errWall = errors.New("it took too long")

// errNoisy is a child that complains without end.
var errNoisy = errors.New("it complains without end")

// Bounds of what a child may write to its standard error, in bytes.
const (
	keepComplaints = 16 << 10 // the rest is dropped
	maxComplaints  = 4 << 20  // the child is killed
)

// end is how a child came to its end.
type end struct {
	err        error  // nil if its answer is whole
	exit       string // its exit code or signal, in words
	killed     bool   // by a signal that this package did not send
	cpu        time.Duration
	complaints string // the first of its standard error
}

// detail says in a few words why a child failed.
func (e end) detail() string {
	if errors.Is(e.err, errRules) || errors.Is(e.err, errWall) || errors.Is(e.err, errNoisy) {
		return e.err.Error()
	}
	if cause := e.complaint(); cause != "" {
		return e.exit + ": " + cause
	}
	return e.exit
}

// complaint is what a child that failed said of it: the last line with an error, as MuPDF's, or the first of all, as Go's.
func (e end) complaint() string {
	first, last := "", ""
	for line := range strings.SplitSeq(e.complaints, "\n") {
		line = cut(strings.TrimSpace(line), maxDetail)
		if first == "" {
			first = line
		}
		if strings.Contains(line, "error") {
			last = line
		}
	}
	if last == "" {
		return first
	}
	return last
}

// outOfMemory tells whether a child died of its limit on memory: MuPDF, the C library and the Go runtime all say so.
func (e end) outOfMemory() bool {
	return strings.Contains(e.complaints, "alloc") && strings.Contains(e.complaints, "failed") ||
		strings.Contains(e.complaints, "out of memory") || strings.Contains(e.complaints, "cannot allocate memory")
}

// verdict makes a refusal of a child that failed, or that refuses itself.
func verdict(source Source, a *answer, e end, limits Limits) *wire.Refusal {
	if errors.Is(e.err, errRefused) {
		return refused(source, *a.refusal)
	}
	args := map[string]any{"where": where(a.stage)}
	code := wire.DocumentCrashed
	switch {
	case errors.Is(e.err, errWall):
		code, args["timeout_ms"] = wire.DocumentTimeout, limits.Wall.Milliseconds()
	case e.killed && e.cpu >= limits.CPU-time.Second/2: // the kernel counts in ticks
		code, args["timeout_ms"] = wire.DocumentTimeout, limits.CPU.Milliseconds()
	case e.outOfMemory():
		code, args = wire.DocumentTooLarge, map[string]any{
			"what":  "the memory that it needs",
			"limit": fmt.Sprintf("%d MiB", limits.MemoryBytes>>20),
		}
	default:
		args["detail"] = e.detail()
	}
	return source.refuse(code, args).Because(e.err)
}

// refused makes a refusal of a child's own. Its cause is checked, its detail only shown.
func refused(source Source, r protocol.Refusal) *wire.Refusal {
	switch r.Cause {
	case protocol.NotSupported:
		return source.refuse(wire.DocumentUnsupported, map[string]any{"kind": r.Detail})
	case protocol.NeedsPassword:
		return source.refuse(wire.DocumentEncrypted, map[string]any{"reason": "needs a password"})
	case protocol.WrongPassword:
		return source.refuse(wire.DocumentEncrypted, map[string]any{"reason": "has another password"})
	case protocol.NoSuchPage:
		return source.refuse(wire.BadRequest, map[string]any{"reason": fmt.Sprintf("the document has only %s", plural(r.Pages, "page"))})
	case protocol.Unreadable:
		return source.refuse(wire.DocumentUnreadable, map[string]any{"reason": r.Detail})
	case protocol.NotConfined:
		return source.refuse(wire.DocumentCrashed, map[string]any{"where": "setting its limits", "detail": r.Detail})
	}
	return source.refuse(wire.DocumentCrashed, map[string]any{"where": "opening it", "detail": "its answer breaks the rules"})
}

// where says in words what a child died of.
func where(s protocol.Stage) string {
	switch s.Step {
	case protocol.Start:
		return "starting"
	case protocol.Counting:
		return "counting its pages"
	case protocol.ReadingPage:
		return fmt.Sprintf("page %d", s.Page)
	case protocol.Drawing:
		return fmt.Sprintf("drawing page %d", s.Page)
	case protocol.Metadata:
		return "its metadata"
	case protocol.Contents:
		return "its table of contents"
	}
	return "opening it"
}

// complaints keeps the beginning of a child's standard error.
type complaints struct {
	noisy func() // called once above maxComplaints

	mu   sync.Mutex // guards the rest
	head []byte
	size int
}

func (c *complaints) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.size
	c.size += len(p)
	c.head = append(c.head, p[:min(len(p), keepComplaints-len(c.head))]...)
	if before <= maxComplaints && c.size > maxComplaints {
		c.noisy()
	}
	return len(p), nil
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ToValidUTF8(string(c.head), "\uFFFD")
}

// writeRequest hands the request to a child that may be dead already.
func writeRequest(w *os.File, request []byte) error {
	defer w.Close()
	if err := w.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	_, err := w.Write(request)
	return err
}
