package adb

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"
	"time"
)

// regularFile is S_IFREG of Linux.
const regularFile = 0o100000

// Send writes what r yields to a file on the phone, with the permission bits of
// mode and the modification time mtime (whole seconds). Real phones give group
// and others the owner's bits too. Missing folders are made by phones with
// fixed_push_mkdir. It blocks until the phone has confirmed
// the file, ctx ends, or nothing moves for Options.IdleTimeout (ErrTimeout).
// Until it has returned nil the file may be missing or cut short. A refusal by
// the phone is a *SyncError, and ends the transfer while r is still being read.
// A Read of r that waits is not interrupted.
func (s *Sync) Send(ctx context.Context, r io.Reader, path string, mode fs.FileMode, mtime time.Time) error {
	if !mode.IsRegular() {
		return fmt.Errorf("adb: send %q: only regular files can be sent, not %s", path, mode)
	}
	posix := uint32(regularFile | mode.Perm())
	request := syncRequest(syncSend1, path+","+strconv.FormatUint(uint64(posix), 10))
	if s.conn.HasFeature(FeatureSendRecv2) {
		// The second part repeats the id: mode, then flags (none: no compression).
		request = append(syncRequest(syncSend2, path), syncSend2...)
		request = binary.LittleEndian.AppendUint32(request, posix)
		request = binary.LittleEndian.AppendUint32(request, 0)
	} else if len(request)-8 > syncMaxPath {
		return fmt.Errorf("adb: send: path of %d bytes with its mode, at most %d allowed", len(request)-8, syncMaxPath)
	}
	return s.call(ctx, "send", path, func(t *syncStream) error {
		return t.send(r, request, mtime, s.conn.sendMax)
	})
}

// send reads the phone's verdict while it is still sending: a phone that has
// failed drains what comes, and would be sent the whole file for nothing.
func (t *syncStream) send(r io.Reader, request []byte, mtime time.Time, most int) error {
	verdict := make(chan error, 1)
	// While data goes out the verdict may take as long as that; the writing
	// side has a bound of its own.
	_ = t.stream.SetReadDeadline(time.Time{})
	go func() {
		err := t.verdict()
		verdict <- err
		if err != nil {
			t.stopWriting()
		}
	}()
	sendErr := t.sendData(r, request, mtime, most, verdict)
	var source *sourceError
	if errors.As(sendErr, &source) {
		// The phone still waits for data: the file must not be completed.
		_ = t.stream.Close()
		<-verdict
		return fmt.Errorf("adb: send %q: reading the source: %w", t.path, source.err)
	}
	// The phone's own words say more than how writing to it failed. They are
	// on their way if it ended the stream; they have IdleTimeout to come, but
	// not a second one: after a write that ran out of time they would be here.
	wait := t.idle
	if errors.Is(sendErr, os.ErrDeadlineExceeded) {
		wait = min(wait, closeGrace)
	}
	_ = t.stream.SetReadDeadline(time.Now().Add(wait))
	if sendErr != nil && !errors.Is(sendErr, errVerdict) && !errors.Is(sendErr, ErrStreamClosed) && !errors.Is(sendErr, os.ErrDeadlineExceeded) {
		_ = t.stream.Close()
	}
	err := <-verdict
	var said *SyncError
	if err == nil || sendErr == nil || errors.As(err, &said) {
		t.inStep = err == nil && sendErr == nil
		if err == nil && sendErr != nil {
			return protocolError("OKAY before the end of a file")
		}
		return err
	}
	return sendErr
}

// errVerdict: the phone answered before the file's end.
var errVerdict = errors.New("adb: early answer")

// sourceError is a failure of the reader that Send was given.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }

func (t *syncStream) sendData(r io.Reader, request []byte, mtime time.Time, most int, verdict chan error) error {
	// Several DATA chunks share a packet where packets are large.
	w := bufio.NewWriterSize(t, most)
	if _, err := w.Write(request); err != nil {
		return err
	}
	chunk := make([]byte, 8+syncMaxData)
	for {
		n, err := io.ReadAtLeast(r, chunk[8:], 1)
		if n > 0 {
			copy(chunk, syncData)
			binary.LittleEndian.PutUint32(chunk[4:], uint32(n))
			if _, err := w.Write(chunk[:8+n]); err != nil {
				return err
			}
		}
		if len(verdict) > 0 {
			return errVerdict
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return &sourceError{err}
		}
	}
	done := append([]byte(nil), syncDone...)
	done = binary.LittleEndian.AppendUint32(done, uint32(min(max(mtime.Unix(), 0), math.MaxUint32)))
	if _, err := w.Write(done); err != nil {
		return err
	}
	return w.Flush()
}

// verdict reads OKAY or FAIL.
func (t *syncStream) verdict() error {
	var head [8]byte
	if _, err := io.ReadFull(t.stream, head[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(head[4:])
	switch string(head[:4]) {
	case syncOkay:
		return nil
	case syncFail:
		return t.readFail(t.stream, length)
	}
	return t.unexpected(head[:4])
}
