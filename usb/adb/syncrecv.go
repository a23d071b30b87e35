package adb

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
)

// Receive copies a file of the phone to w. It blocks until the file has come,
// ctx ends, w fails, or nothing moves for Options.IdleTimeout (ErrTimeout). A
// refusal by the phone is a *SyncError. The size is not bounded here: w may
// refuse to take more.
func (s *Sync) Receive(ctx context.Context, path string, w io.Writer) error {
	request := syncRequest(syncRecv1, path)
	if s.conn.HasFeature(FeatureSendRecv2) {
		// The second part repeats the id, then flags (none: no compression).
		request = append(syncRequest(syncRecv2, path), syncRecv2...)
		request = binary.LittleEndian.AppendUint32(request, 0)
	}
	return s.call(ctx, "receive", path, func(t *syncStream) error {
		if _, err := t.Write(request); err != nil {
			return err
		}
		return t.receive(t, w)
	})
}

// receive reads DATA chunks from r until DONE.
func (t *syncStream) receive(r io.Reader, w io.Writer) error {
	buf := make([]byte, syncMaxData)
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		length := binary.LittleEndian.Uint32(head[4:])
		switch string(head[:4]) {
		case syncDone:
			t.inStep = true
			return nil
		case syncFail:
			return t.readFail(r, length)
		case syncData:
		default:
			return t.unexpected(head[:4])
		}
		if length > syncMaxData {
			return protocolError("DATA of %d bytes, at most %d allowed", length, syncMaxData)
		}
		if _, err := io.ReadFull(r, buf[:length]); err != nil {
			return err
		}
		if _, err := w.Write(buf[:length]); err != nil {
			return fmt.Errorf("adb: receive %q: writing: %w", t.path, err)
		}
	}
}
