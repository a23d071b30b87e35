package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"phonerack/sync/wire"
)

// Source is a document to be read once. Its name is for people: it says nothing about the kind.
type Source struct {
	name   string
	reader io.Reader // if file is nil
	file   *os.File
}

// FromBytes reads a document from memory.
func FromBytes(name string, b []byte) Source { return Source{name: name, reader: bytes.NewReader(b)} }

// FromReader reads a document from a stream, to its end. Read blocks as long as the stream does: it is the stream that
// has to end with the context.
func FromReader(name string, r io.Reader) Source { return Source{name: name, reader: r} }

// FromFile reads a document from a file, all of it. The file stays open and its position where it is.
func FromFile(name string, f *os.File) Source { return Source{name: name, file: f} }

// open returns the document as a regular file, and what gives it back. spooled counts the bytes of all documents that
// are kept in memory.
func (s Source) open(limits Limits, spooled *atomic.Int64) (f *os.File, done func(), err error) {
	if s.file != nil {
		st, err := s.file.Stat()
		if err != nil {
			return nil, nil, fmt.Errorf("read document: %w", err)
		}
		if st.Mode().IsRegular() {
			return s.file, func() {}, s.checkSize(st.Size(), limits.InputBytes)
		}
		s.reader = s.file
	}
	if s.reader == nil {
		return nil, nil, errors.New("read document: no source")
	}
	if f, err = nameless(); err != nil {
		return nil, nil, fmt.Errorf("keep document: %w", err)
	}
	kept := &share{file: f, most: limits.SpoolBytes, all: spooled}
	if err := s.spool(kept, limits); err != nil {
		kept.free()
		return nil, nil, err
	}
	return f, kept.free, nil
}

// errSpoolFull means that the documents in memory have no room for another byte.
var errSpoolFull = errors.New("the documents that are read now take all the memory for documents")

// share is a document in memory, as a part of all of them.
type share struct {
	file *os.File
	n    int64         // its bytes, written or about to be
	most int64         // bytes of all
	all  *atomic.Int64 // bytes of all
}

// Write implements io.Writer. It fails rather than wait for room: those who have it may wait themselves.
func (s *share) Write(p []byte) (int, error) {
	s.n += int64(len(p))
	if s.all.Add(int64(len(p))) > s.most {
		return 0, errSpoolFull
	}
	return s.file.Write(p)
}

// free gives the memory back.
func (s *share) free() {
	s.file.Close()
	s.all.Add(-s.n)
}

// spool copies a stream to memory, so that a slow stream keeps no child waiting and an endless one is noticed.
func (s Source) spool(to io.Writer, limits Limits) error {
	n, err := io.Copy(to, io.LimitReader(s.reader, limits.InputBytes+1))
	switch {
	case errors.Is(err, errSpoolFull):
		return s.refuse(wire.DocumentTooLarge, map[string]any{
			"what":  "its size together with the documents that are read now",
			"limit": fmt.Sprintf("%d bytes", limits.SpoolBytes),
		}).Because(err)
	case err != nil:
		return fmt.Errorf("keep document: %w", err)
	}
	return s.checkSize(n, limits.InputBytes)
}

func (s Source) checkSize(n, limit int64) error {
	switch {
	case n == 0:
		return s.refuse(wire.DocumentUnreadable, map[string]any{"reason": "it is empty"})
	case n > limit:
		return s.refuse(wire.DocumentTooLarge, map[string]any{"what": "its size", "limit": fmt.Sprintf("%d bytes", limit)})
	}
	return nil
}

// refuse adds the document's name to a refusal.
func (s Source) refuse(code wire.Code, args map[string]any) *wire.Refusal {
	return wire.Refuse(code, args).With(map[string]any{"name": s.name})
}
