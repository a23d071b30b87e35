package document

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"phonerack/agent/document/internal/protocol"
	"phonerack/sync/wire"
)

// Limits bound what documents may cost. The zero value of a field stands for its default; docs/documents.md has the
// reasons.
type Limits struct {
	Children    int           // documents that are read at once, others wait; 2
	InputBytes  int64         // of a document; 64 MiB
	SpoolBytes  int64         // of all documents together that are kept in memory, those that wait among them; three of the largest
	Pages       int           // in one call; 20
	TextBytes   int           // of one page; 256 KiB
	MemoryBytes int64         // that a child may map beyond what it starts with; 384 MiB
	CPU         time.Duration // of a child, rounded up to seconds; 20 s
	Wall        time.Duration // life of a child; 30 s
}

func (l Limits) withDefaults() Limits {
	orElse(&l.Children, 2)
	orElse(&l.InputBytes, 64<<20)
	orElse(&l.SpoolBytes, 3*l.InputBytes)
	orElse(&l.Pages, 20)
	orElse(&l.TextBytes, 256<<10)
	orElse(&l.MemoryBytes, 384<<20)
	orElse(&l.CPU, 20*time.Second)
	orElse(&l.Wall, 30*time.Second)
	return l
}

func orElse[T int | int64 | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// Reader reads documents. Its fields are set before the first use and stay as they are. Its methods may be called by
// several goroutines.
type Reader struct {
	// Program is the command line of the child, its first word an absolute path: /proc/self/exe render-document. It gets nothing of this process's environment.
	Program []string
	Limits  Limits
	Logger  *slog.Logger // nil means slog.Default()

	once    sync.Once
	room    chan struct{} // one element for each living child
	spooled atomic.Int64  // bytes of documents in memory
}

// Read reads a document in a child of its own, and blocks until that child is gone. It is ended early when ctx is done,
// and the error then wraps context.Cause(ctx). Any other failure is or wraps a *wire.Refusal, of the codes DocumentUnreadable,
// DocumentUnsupported, DocumentEncrypted, DocumentTooLarge, DocumentTimeout, DocumentCrashed and BadRequest; or what the
// source said. If the child failed on the way, what it read before is returned together with the refusal.
func (r *Reader) Read(ctx context.Context, source Source, request Request) (*Document, error) {
	limits := r.Limits.withDefaults()
	ask, err := request.ask(limits)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read document: %w", context.Cause(ctx))
	}
	r.once.Do(func() { r.room = make(chan struct{}, limits.Children) })
	// The whole document first, a place after: it may come from a slow phone, and other phones have documents too.
	file, done, err := source.open(limits, &r.spooled)
	if err != nil {
		if _, refused := errors.AsType[*wire.Refusal](err); !refused && ctx.Err() != nil {
			err = fmt.Errorf("read document: %w", context.Cause(ctx))
		}
		return nil, err
	}
	defer done()
	select {
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	case <-ctx.Done():
		return nil, fmt.Errorf("read document: %w", context.Cause(ctx))
	}
	return r.run(ctx, source, file, ask, limits)
}

// run lives as long as the child.
func (r *Reader) run(ctx context.Context, source Source, file *os.File, ask protocol.Request, limits Limits) (*Document, error) {
	begun := time.Now()
	life, cancel := context.WithTimeoutCause(ctx, limits.Wall, errWall)
	defer cancel()
	answer := newAnswer(source.name, ask)
	end, err := runChild(life, r.Program, file, ask, answer)
	if err != nil {
		if _, refused := errors.AsType[*wire.Refusal](err); refused {
			return nil, err
		}
		return nil, source.refuse(wire.DocumentCrashed, map[string]any{"where": "starting", "detail": err.Error()}).Because(err)
	}
	log := r.Logger
	if log == nil {
		log = slog.Default()
	}
	log = log.With("document", source.name, "took", time.Since(begun).Round(time.Millisecond), "cpu", end.cpu)
	if end.err == nil {
		answer.addComplaints(end.complaints)
		log.Debug("document read", "kind", answer.doc.Kind, "pages", len(answer.doc.Pages))
		return answer.doc, nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read document: %w", context.Cause(ctx))
	}
	liar := errors.Is(end.err, errRules) // who breaks one rule may have broken others that nobody checks
	if answer.pagesDone() && !liar {     // only what comes last is missing
		answer.problem(InfoMissing, end.detail())
		log.Warn("document read in part", "err", end.err, "said", end.complaint())
		return answer.doc, nil
	}
	refusal := verdict(source, answer, end, limits)
	answer.explainMissingPicture(end.detail())
	log.Info("document refused", "code", refusal.Code, "err", end.err, "said", end.complaint())
	if len(answer.doc.Pages) > 0 && !liar {
		answer.addComplaints(end.complaints)
		return answer.doc, refusal
	}
	return nil, refusal
}

// ask checks a request and fills in what is left open.
func (q Request) ask(limits Limits) (protocol.Request, error) {
	orElse(&q.First, 1)
	if q.Last == 0 {
		q.Last = q.First + limits.Pages - 1
	}
	orElse(&q.MaxWidth, 720)
	orElse(&q.MaxHeight, 1600)
	orElse(&q.ImageBytes, 4<<20)
	var reason string
	switch {
	case q.Last < q.First:
		reason = fmt.Sprintf("its last page %d lies before its first page %d", q.Last, q.First)
	case q.Last-q.First >= limits.Pages:
		reason = fmt.Sprintf("it asks for %d pages of a document where %d are read at once", q.Last-q.First+1, limits.Pages)
	case q.First > maxPages:
		reason = fmt.Sprintf("no document has %d pages", q.First)
	case q.MaxWidth > MaxPixels, q.MaxHeight > MaxPixels:
		reason = fmt.Sprintf("it asks for pictures of %dx%d pixels where at most %d are made in each direction", q.MaxWidth, q.MaxHeight, MaxPixels)
	case len(q.Password) > MaxPassword:
		reason = fmt.Sprintf("its password is longer than %d bytes", MaxPassword)
	}
	if reason != "" {
		return protocol.Request{}, wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
	}
	return protocol.Request{
		First: q.First, Last: q.Last,
		Text: q.Text, Images: q.Images, Links: q.Links, Metadata: q.Metadata, Contents: q.Contents,
		PNG: q.PNG, MaxWidth: q.MaxWidth, MaxHeight: q.MaxHeight, ImageBytes: q.ImageBytes,
		TextBytes: limits.TextBytes, Password: []byte(q.Password),
		Limits: protocol.Limits{
			Memory:     uint64(limits.MemoryBytes),
			CPUSeconds: uint64((limits.CPU + time.Second - 1) / time.Second),
		},
	}, nil
}
