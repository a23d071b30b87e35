package firmware

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// blobCloud answers blob.get with parts of a body.
type blobCloud struct {
	body  []byte
	asks  []int64 // offsets
	wrong func(d *wire.BlobData, part *[]byte) error
}

func (c *blobCloud) ask(_ context.Context, call link.Call) (*wire.Message, error) {
	get := call.Body.(wire.BlobGet)
	c.asks = append(c.asks, get.Offset)
	d := wire.BlobData{SHA256: get.SHA256, Offset: get.Offset, Size: int64(len(c.body))}
	part := c.body[get.Offset:min(int64(len(c.body)), get.Offset+wire.MaxBlobPart)]
	if c.wrong != nil {
		if err := c.wrong(&d, &part); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	m := &wire.Message{Type: wire.TypeBlobData, Body: raw}
	m.Attach(wire.BlobAttachment, "application/json", part)
	return m, nil
}

func inputOf(body []byte) wire.Input {
	sum := sha256.Sum256(body)
	return wire.Input{Name: "a.txt", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))}
}

func newFetcher(t *testing.T) *Rack {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	in, err := newInputs(t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	return &Rack{inputs: in, log: log}
}

func TestAFileOfTheCloudIsFetchedInPartsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFetcher(t)
		c := &blobCloud{body: bytes.Repeat([]byte("0123456789abcdef"), 40_000)} // 640,000 bytes: three parts
		in := inputOf(c.body)
		failed := false
		c.wrong = func(d *wire.BlobData, _ *[]byte) error {
			if d.Offset > 0 && !failed { // the link breaks once
				failed = true
				return link.ErrOffline
			}
			return nil
		}
		if err := r.fetchInput(t.Context(), c.ask, in); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(r.inputs.folder, in.SHA256)); err != nil || !bytes.Equal(got, c.body) {
			t.Errorf("%d bytes are kept, %v", len(got), err)
		}
		if len(c.asks) != 4 || c.asks[1] != c.asks[2] || c.asks[3] != 2*wire.MaxBlobPart {
			t.Errorf("asked for %v", c.asks)
		}
		if err := r.fetchInput(t.Context(), c.ask, in); err != nil || len(c.asks) != 4 {
			t.Errorf("what is here is fetched again: %v, %v", c.asks, err)
		}
		in.Size++
		if err := r.fetchInput(t.Context(), c.ask, in); !wire.Is(err, wire.InputMissing) {
			t.Errorf("of another size: %v", err)
		}
	})
}

func TestAFileThatIsNotTheOneOfItsHashIsNotKept(t *testing.T) {
	body := []byte("the file")
	for name, c := range map[string]struct {
		wrong func(d *wire.BlobData, part *[]byte) error
		says  string
	}{
		"other bytes": {func(_ *wire.BlobData, part *[]byte) error { *part = []byte("another!"); return nil }, "not those of its hash"},
		"another hash": {func(d *wire.BlobData, _ *[]byte) error {
			d.SHA256 = strings.Repeat("0", 64)
			return nil
		}, "not the part"},
		"another offset": {func(d *wire.BlobData, _ *[]byte) error { d.Offset = 3; return nil }, "not the part"},
		"another size":   {func(d *wire.BlobData, _ *[]byte) error { d.Size = 1 << 40; return nil }, "not the part"},
		"no bytes":       {func(_ *wire.BlobData, part *[]byte) error { *part = nil; return nil }, "not the part"},
		"too many bytes": {func(_ *wire.BlobData, part *[]byte) error { *part = append(*part, 'x'); return nil }, "not the part"},
		"a refusal": {func(*wire.BlobData, *[]byte) error {
			return wire.Refuse(wire.NotFound, map[string]any{"what": "blob", "id": "x"})
		}, "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFetcher(t)
			cloud := &blobCloud{body: body, wrong: func(d *wire.BlobData, part *[]byte) error {
				*part = bytes.Clone(*part)
				return c.wrong(d, part)
			}}
			err := r.fetchInput(t.Context(), cloud.ask, inputOf(body))
			refusal := wire.From(err)
			if refusal.Code != wire.InputMissing || refusal.Retryable || !strings.Contains(refusal.Sentence("en"), c.says) || !strings.Contains(refusal.Sentence("en"), "a.txt") {
				t.Errorf("got %v, retryable %t", err, refusal.Retryable)
			}
			if left, _ := filepath.Glob(filepath.Join(r.inputs.folder, "*")); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestAFileIsWaitedForUntilTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFetcher(t)
		c := &blobCloud{body: []byte("the file"), wrong: func(*wire.BlobData, *[]byte) error { return link.ErrOffline }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.fetchInput(ctx, c.ask, inputOf(c.body))
		if r := wire.From(err); r.Code != wire.InputMissing || !r.Retryable {
			t.Errorf("got %v", err)
		}
		if len(c.asks) < 50 || len(c.asks) > 61 {
			t.Errorf("asked %d times in a minute", len(c.asks))
		}
	})
}
