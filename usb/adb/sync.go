package adb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Sync transfers files. Its methods may be called from any goroutine and are
// served one after another. The phone ends the service after a failed
// transfer; the next call opens it anew, so one Sync can be kept.
type Sync struct {
	conn *Conn
	busy chan struct{} // semaphore: held during a call; guards the fields below

	stream *Stream // nil: to be opened
	closed bool
}

// Limits of the protocol (AOSP file_sync_protocol.h).
const (
	syncMaxPath = 1024
	syncMaxData = 64 << 10
	// syncMaxFail bounds the text of a FAIL.
	syncMaxFail = 4096
	// syncMaxEntries bounds a listing.
	syncMaxEntries = 200_000
)

// Ids of the sync protocol: four letters as a little-endian word.
const (
	syncStat1   = "STAT"
	syncStat2   = "STA2"
	syncLstat2  = "LST2"
	syncList1   = "LIST"
	syncList2   = "LIS2"
	syncDirent1 = "DENT"
	syncDirent2 = "DNT2"
	syncSend1   = "SEND"
	syncSend2   = "SND2"
	syncRecv1   = "RECV"
	syncRecv2   = "RCV2"
	syncData    = "DATA"
	syncDone    = "DONE"
	syncOkay    = "OKAY"
	syncFail    = "FAIL"
	syncQuit    = "QUIT"
)

// Sync opens the phone's file service; see Open for what blocks.
func (c *Conn) Sync(ctx context.Context) (*Sync, error) {
	s := &Sync{conn: c, busy: make(chan struct{}, 1)}
	var err error
	if s.stream, err = c.Open(ctx, "sync:"); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the service. It waits for a call in progress, whose context can
// end it. Closing twice is harmless.
func (s *Sync) Close() error {
	s.busy <- struct{}{}
	defer func() { <-s.busy }()
	s.closed = true
	if s.stream != nil {
		_ = s.stream.SetWriteDeadline(time.Now().Add(closeGrace))
		_, _ = s.stream.Write(syncRequest(syncQuit, ""))
		s.drop()
	}
	return nil
}

func (s *Sync) drop() {
	_ = s.stream.Close()
	s.stream = nil
}

// SyncError is the phone's answer to a file operation that failed. It unwraps
// to fs.ErrNotExist, fs.ErrPermission, fs.ErrExist or a syscall.Errno such as
// syscall.ENOSPC where the phone's answer tells.
type SyncError struct {
	Op      string // "send", "receive", "stat" or "list"
	Path    string
	Message string // the phone's words
	Err     error  // nil if unknown
}

// Error implements error.
func (e *SyncError) Error() string { return fmt.Sprintf("adb: %s %q: %s", e.Op, e.Path, e.Message) }

// Unwrap returns e.Err.
func (e *SyncError) Unwrap() error { return e.Err }

// call runs one operation under ctx on an open stream. Unless the operation
// ended in step with the phone the stream is given up.
func (s *Sync) call(ctx context.Context, op, path string, f func(*syncStream) error) error {
	if path == "" || len(path) > syncMaxPath {
		return fmt.Errorf("adb: %s: path of %d bytes, 1 to %d allowed", op, len(path), syncMaxPath)
	}
	// A phone takes the path as a C string: it would work on another file than the one that was named.
	if strings.IndexByte(path, 0) >= 0 {
		return fmt.Errorf("adb: %s %q: path holds a NUL byte", op, path)
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.closed {
		return os.ErrClosed
	}
	if s.stream == nil {
		stream, err := s.conn.Open(ctx, "sync:")
		if err != nil {
			return err
		}
		s.stream = stream
	}
	stream := s.stream
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	t := &syncStream{stream: stream, op: op, path: path, idle: s.conn.o.IdleTimeout}
	err := f(t)
	if !stop() || !t.inStep {
		s.drop()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("adb: %s %q: %w", op, path, ctx.Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %s %q made no progress", ErrTimeout, op, path)
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("adb: %s %q: the phone ended the transfer: %w", op, path, io.ErrUnexpectedEOF)
	}
	return err
}

// syncStream is a sync stream during one operation. Reads and writes fail when
// nothing moves for the idle time.
type syncStream struct {
	stream *Stream
	op     string
	path   string
	idle   time.Duration
	inStep bool // the operation ended where the next may begin

	stopped atomic.Bool // set before the write deadline is moved to the past
}

func (t *syncStream) Read(p []byte) (int, error) {
	_ = t.stream.SetReadDeadline(time.Now().Add(t.idle))
	return t.stream.Read(p)
}

func (t *syncStream) Write(p []byte) (int, error) {
	_ = t.stream.SetWriteDeadline(time.Now().Add(t.idle))
	if t.stopped.Load() {
		t.stopWriting()
	}
	return t.stream.Write(p)
}

// stopWriting makes the current and every later Write fail.
func (t *syncStream) stopWriting() {
	t.stopped.Store(true)
	_ = t.stream.SetWriteDeadline(time.Unix(1, 0))
}

// syncRequest encodes id, length and text.
func syncRequest(id, text string) []byte {
	b := append(make([]byte, 0, 8+len(text)), id...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// readFail reads the rest of a FAIL whose length was read already.
func (t *syncStream) readFail(r io.Reader, length uint32) error {
	if length > syncMaxFail {
		return protocolError("FAIL of %d bytes", length)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	return t.failure(string(text))
}

func (t *syncStream) failure(message string) error {
	return &SyncError{Op: t.op, Path: t.path, Message: message, Err: errorOfMessage(message)}
}

// unexpected is an answer with a wrong id.
func (t *syncStream) unexpected(id []byte) error {
	return protocolError("%q in answer to %s", id, t.op)
}

// errnoOf maps Linux error numbers, which stat_v2 answers with, to this
// system's errors.
func errnoOf(number uint32) error {
	switch number {
	case 1, 13:
		return fs.ErrPermission
	case 2:
		return fs.ErrNotExist
	case 17:
		return fs.ErrExist
	case 20:
		return syscall.ENOTDIR
	case 28:
		return syscall.ENOSPC
	case 30:
		return syscall.EROFS
	case 36:
		return syscall.ENAMETOOLONG
	case 40:
		return syscall.ELOOP
	}
	return nil
}
