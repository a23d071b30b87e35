package phone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"phonerack/sync/wire"
)

// Pull copies a file of the phone, at most limit bytes, to w. A larger one is a
// *wire.Refusal of code wire.FileTooLarge; w has its beginning then. One that the
// phone does not give is an *adb.SyncError. Pull blocks until the file has come,
// ctx ends, or nothing moves for as long as the connection allows.
func (p *Phone) Pull(ctx context.Context, path string, w io.Writer, limit int64) error {
	if !strings.HasPrefix(path, "/") || strings.IndexByte(path, 0) >= 0 {
		return fmt.Errorf("pull: %.200q is no whole path: %w", path, ErrBadArgument)
	}
	f, err := p.conn.sync(ctx)
	if err != nil {
		return fmt.Errorf("pull %.200q: %w", path, err)
	}
	defer f.Close()
	if err := f.Receive(ctx, path, &limitedWriter{w: w, left: limit}); err != nil {
		if errors.Is(err, errLimit) {
			return wire.Refuse(wire.FileTooLarge, map[string]any{"path": path, "limit": limit}).Because(ErrTooLarge)
		}
		return fmt.Errorf("pull %.200q: %w", path, err)
	}
	return nil
}

var errLimit = errors.New("limit reached")

// limitedWriter refuses what goes beyond left bytes.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, errLimit
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
