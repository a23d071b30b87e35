package firmware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

const (
	partTime  = 20 * time.Second // for the answer to one part of a file
	partAgain = time.Second      // after one that did not come
)

// asker sends a request and waits for its answer, with the errors of link.Link.Request.
type asker func(ctx context.Context, c link.Call) (*wire.Message, error)

// errOddPart means that the cloud answered with something else than the part that was asked for.
var errOddPart = errors.New("the cloud's answer is not the part that was asked for")

// fetchInput has a file of a task here, fetched from the cloud if it is not yet. It waits for a cloud that is away until ctx ends.
func (r *Rack) fetchInput(ctx context.Context, ask asker, in wire.Input) error {
	if f, size, err := r.inputs.open(in.SHA256); err == nil {
		f.Close()
		if size != in.Size {
			return missing(in, fmt.Sprintf("it has %d bytes where the task says %d", size, in.Size))
		}
		return nil
	}
	begun := time.Now()
	_, err := r.inputs.keep(ctx, &blobReader{ctx: ctx, ask: ask, in: in}, in.SHA256)
	if err == nil {
		r.log.Info("a file of a task was fetched", "name", in.Name, "bytes", in.Size, "took", time.Since(begun).Round(time.Millisecond))
		return nil
	}
	refusal, refused := errors.AsType[*wire.Refusal](err)
	switch {
	case ctx.Err() != nil:
		return missing(in, "it did not arrive in time").After(0) // another time it may
	case refused && refusal.Code == wire.RackFull:
		return err
	case refused:
		return missing(in, fmt.Sprintf("the cloud refused it with %s", refusal.Code)).Because(err)
	}
	return missing(in, err.Error()).Because(err)
}

func missing(in wire.Input, reason string) *wire.Refusal {
	return wire.Refuse(wire.InputMissing, map[string]any{"name": in.Name, "reason": reason})
}

// blobReader reads a file of the cloud part by part.
type blobReader struct {
	ctx  context.Context
	ask  asker
	in   wire.Input
	at   int64 // of the next part
	part []byte
}

func (b *blobReader) Read(p []byte) (int, error) {
	if len(b.part) == 0 {
		if b.at >= b.in.Size {
			return 0, io.EOF
		}
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.part)
	b.part = b.part[n:]
	return n, nil
}

// next asks for a part until it comes or is refused for good, or the context ends.
func (b *blobReader) next() error {
	for {
		part, err := b.once()
		if err == nil {
			b.part, b.at = part, b.at+int64(len(part))
			return nil
		}
		if r, ok := errors.AsType[*wire.Refusal](err); ok && !r.Retryable && r.Code != wire.Internal || errors.Is(err, errOddPart) {
			return err
		}
		pause(b.ctx, partAgain)
		if err := b.ctx.Err(); err != nil {
			return err
		}
	}
}

func (b *blobReader) once() ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.ctx, partTime)
	defer cancel()
	m, err := b.ask(ctx, link.Call{Kind: wire.KindSkill, Type: wire.TypeBlobGet, Body: wire.BlobGet{SHA256: b.in.SHA256, Offset: b.at}})
	if err != nil {
		return nil, err
	}
	var d wire.BlobData
	part := m.Attachment(wire.BlobAttachment)
	if m.Type != wire.TypeBlobData || m.Decode(&d) != nil || d.SHA256 != b.in.SHA256 || d.Offset != b.at || d.Size != b.in.Size ||
		len(part) == 0 || len(part) > wire.MaxBlobPart || int64(len(part)) > b.in.Size-b.at {
		return nil, errOddPart
	}
	return part, nil
}
