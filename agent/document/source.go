package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

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

// open returns the document as a regular file, and what gives it back.
func (s Source) open(limit int64) (f *os.File, done func(), err error) {
	if s.file != nil {
		st, err := s.file.Stat()
		if err != nil {
			return nil, nil, fmt.Errorf("read document: %w", err)
		}
		if st.Mode().IsRegular() {
			return s.file, func() {}, s.checkSize(st.Size(), limit)
		}
		s.reader = s.file
	}
	if s.reader == nil {
		return nil, nil, errors.New("read document: no source")
	}
	if f, err = nameless(); err != nil {
		return nil, nil, fmt.Errorf("keep document: %w", err)
	}
	if err := s.spool(f, limit); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, func() { f.Close() }, nil
}

// spool copies a stream to a file, so that a slow stream keeps no child waiting and an endless one is noticed.
func (s Source) spool(f *os.File, limit int64) error {
	n, err := io.Copy(f, io.LimitReader(s.reader, limit+1))
	if err != nil {
		return fmt.Errorf("keep document: %w", err)
	}
	return s.checkSize(n, limit)
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
