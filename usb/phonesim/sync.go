package phonesim

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"
)

// Names of the requests and answers of file transfer; four letters on the wire.
const (
	syncStat    = "STAT" // of the entry itself: what later became LST2
	syncStat2   = "STA2"
	syncLstat2  = "LST2"
	syncList    = "LIST"
	syncList2   = "LIS2"
	syncSend    = "SEND"
	syncSend2   = "SND2"
	syncRecv    = "RECV"
	syncRecv2   = "RCV2"
	syncEntry   = "DENT"
	syncEntry2  = "DNT2"
	syncData    = "DATA"
	syncDone    = "DONE"
	syncOkay    = "OKAY"
	syncFail    = "FAIL"
	syncQuit    = "QUIT"
	maxSyncPath = 1024     // bytes
	maxSyncData = 64 << 10 // bytes in a DATA chunk
)

// errSyncEnds ends a stream: after a failed transfer, on QUIT, and when the host talks nonsense.
var errSyncEnds = errors.New("sync: the stream ends")

// syncService serves "sync:", the transfer of files: one request after the other, until one fails.
type syncService struct {
	system  System
	release release
	r       *bufio.Reader
	w       *bufio.Writer
}

func newSyncService(d *daemon, s *stream) *syncService {
	return &syncService{
		system: d.phone.config.System, release: d.release,
		r: bufio.NewReaderSize(s, maxSyncData), w: bufio.NewWriterSize(s, 4*maxSyncData),
	}
}

func (y *syncService) serve() {
	for {
		err := y.request()
		if flushErr := y.w.Flush(); err != nil || flushErr != nil {
			return
		}
	}
}

// word is the shape of most of the protocol: four letters and a number.
type word struct {
	id    string
	value uint32
}

func (y *syncService) readWord() (word, error) {
	var b [8]byte
	_, err := io.ReadFull(y.r, b[:])
	return word{string(b[:4]), binary.LittleEndian.Uint32(b[4:])}, err
}

func (y *syncService) writeWord(id string, value uint32) error {
	_, err := y.w.Write(binary.LittleEndian.AppendUint32([]byte(id), value))
	return err
}

// fail tells the host that a request has failed.
func (y *syncService) fail(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if err := y.writeWord(syncFail, uint32(len(text))); err != nil {
		return err
	}
	y.w.WriteString(text)
	return y.w.Flush()
}

// failEnds fails and ends the stream.
func (y *syncService) failEnds(format string, args ...any) error {
	if err := y.fail(format, args...); err != nil {
		return err
	}
	return errSyncEnds
}

// request serves one request.
func (y *syncService) request() error {
	req, err := y.readWord()
	if err != nil {
		return err
	}
	if req.value > maxSyncPath {
		return y.failEnds("path too long")
	}
	b := make([]byte, req.value)
	if _, err := io.ReadFull(y.r, b); err != nil {
		return err
	}
	path := string(b)
	switch {
	case req.id == syncStat:
		return y.stat(path)
	case (req.id == syncStat2 || req.id == syncLstat2) && y.release.has("stat_v2"):
		return y.stat2(req.id, path)
	case req.id == syncList:
		return y.list(path, syncEntry)
	case req.id == syncList2 && y.release.has("ls_v2"):
		return y.list(path, syncEntry2)
	case req.id == syncSend:
		return y.send(path)
	case req.id == syncSend2 && y.release.has("sendrecv_v2"):
		return y.send2(path)
	case req.id == syncRecv:
		return y.receive(path, 0)
	case req.id == syncRecv2 && y.release.has("sendrecv_v2"):
		return y.receive2(path)
	case req.id == syncQuit:
		return errSyncEnds
	}
	return y.failEnds("unknown command %08x", binary.LittleEndian.Uint32([]byte(req.id)))
}

// errnos are the errors that the protocol carries: Linux's numbers, and the words that go into messages.
var errnos = []struct {
	err    error
	number uint32
	text   string
}{
	{syscall.EROFS, 30, "Read-only file system"},
	{syscall.ENOSPC, 28, "No space left on device"},
	{syscall.EISDIR, 21, "Is a directory"},
	{syscall.ENOTDIR, 20, "Not a directory"},
	{syscall.ELOOP, 40, "Too many symbolic links encountered"},
	{syscall.ENAMETOOLONG, 36, "File name too long"},
	{syscall.EINVAL, 22, "Invalid argument"},
	{syscall.EPERM, 1, "Operation not permitted"},
	{fs.ErrNotExist, 2, "No such file or directory"},
	{fs.ErrPermission, 13, "Permission denied"},
	{fs.ErrExist, 17, "File exists"},
}

// errno returns number and text of an error of a System; an unknown one is an I/O error.
func errno(err error) (uint32, string) {
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return e.number, e.text
		}
	}
	return 5, "I/O error"
}

// The type bits of a Linux mode.
const (
	modeTypeMask  = 0o170000
	modeDirectory = 0o040000
	modeRegular   = 0o100000
	modeSymlink   = 0o120000
	modeCharacter = 0o020000
)

// linuxMode turns a Go mode into Linux's.
func linuxMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	switch {
	case m&fs.ModeDir != 0:
		return bits | modeDirectory
	case m&fs.ModeSymlink != 0:
		return bits | modeSymlink
	case m&fs.ModeCharDevice != 0:
		return bits | modeCharacter
	}
	return bits | modeRegular
}

// goMode turns the mode of a file to be made into Go's; ok is false for what cannot be sent.
func goMode(m uint32) (mode fs.FileMode, ok bool) {
	mode = fs.FileMode(m & 0o777)
	switch m & modeTypeMask {
	case modeRegular, 0:
		return mode, true
	case modeSymlink:
		return mode | fs.ModeSymlink, true
	}
	return 0, false
}

// cutMode splits the argument of SEND: path, comma, mode. The path may have commas of its own.
func cutMode(arg string) (path, mode string, ok bool) {
	i := strings.LastIndexByte(arg, ',')
	if i < 0 {
		return "", "", false
	}
	return arg[:i], arg[i+1:], true
}
