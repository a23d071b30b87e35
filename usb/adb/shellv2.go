package adb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Packets of the shell protocol (AOSP shell_protocol.h): u8 id, u32
// little-endian length, data. They are cut and joined freely by WRTEs.
const (
	shellStdin      = 0
	shellStdout     = 1
	shellStderr     = 2
	shellExit       = 3 // one byte: the exit code
	shellCloseStdin = 4

	shellHeader = 5
)

func putShellHeader(b []byte, id byte, length int) {
	b[0] = id
	binary.LittleEndian.PutUint32(b[1:], uint32(length))
}

// shellReader takes the shell protocol apart. A packet longer than its buffer
// is returned in pieces, so a length that lies costs no memory.
type shellReader struct {
	r    *bufio.Reader
	buf  []byte
	id   byte
	left uint32 // of the packet being read
}

func newShellReader(r io.Reader) *shellReader {
	return &shellReader{r: bufio.NewReaderSize(r, 64<<10), buf: make([]byte, 32<<10)}
}

// next returns a piece of a packet for the host: stdout, stderr or exit. The
// data is valid until the next call. io.EOF is returned between packets only.
func (s *shellReader) next() (id byte, data []byte, err error) {
	for s.left == 0 {
		var head [shellHeader]byte
		if _, err := io.ReadFull(s.r, head[:]); err != nil {
			return 0, nil, err
		}
		s.id, s.left = head[0], binary.LittleEndian.Uint32(head[1:])
		switch s.id {
		case shellStdout, shellStderr:
		case shellExit:
			if s.left != 1 {
				return 0, nil, protocolError("shell exit packet of %d bytes", s.left)
			}
		default:
			return 0, nil, protocolError("shell packet of kind %d", s.id)
		}
	}
	// What has arrived is passed on at once rather than collected.
	n, err := s.r.Read(s.buf[:min(int64(len(s.buf)), int64(s.left))])
	s.left -= uint32(n)
	if n > 0 {
		return s.id, s.buf[:n], nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return 0, nil, err
}
