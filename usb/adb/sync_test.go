package adb_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/adb/adbtest"
)

// fileService is a phone's sync service over files in memory.
type fileService struct {
	v2 bool

	mu    sync.Mutex // guards files
	files map[string]remoteFile
	fail  string // the answer to SEND
	list  []byte // raw answer to LIST, if set
}

type remoteFile struct {
	data        []byte
	mode, mtime uint32
}

func (f *fileService) phone() *adbtest.Phone {
	p := &adbtest.Phone{Serve: func(service string, s *adbtest.Service) error {
		if service != "sync:" {
			return adbtest.ErrRefuse
		}
		for f.request(s) {
			continue
		}
		return nil
	}}
	if f.v2 {
		p.Features = []string{"stat_v2", "ls_v2", "sendrecv_v2", adb.FeatureDelayedAck}
	}
	return p
}

func u32(n int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }

func message(id string, n int, more ...[]byte) []byte {
	b := append([]byte(id), u32(n)...)
	return append(b, bytes.Join(more, nil)...)
}

func (f *fileService) request(s *adbtest.Service) bool {
	var head [8]byte
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return false
	}
	path := make([]byte, binary.LittleEndian.Uint32(head[4:]))
	_, _ = io.ReadFull(s, path)
	f.mu.Lock()
	defer f.mu.Unlock()
	file, ok := f.files[string(path)]
	second := make([]byte, 0, 12)
	switch string(head[:4]) {
	case "STAT":
		_, _ = s.Write(message("STAT", int(file.mode), u32(len(file.data)), u32(int(file.mtime))))
	case "STA2", "LST2":
		number := 0
		if !ok {
			number = 2
		}
		_, _ = s.Write(append(head[:4:4], stat2(number, file)...))
	case "LIST", "LIS2":
		_, _ = s.Write(f.list)
	case "RCV2":
		second = second[:8]
		_, _ = io.ReadFull(s, second)
		fallthrough
	case "RECV":
		if string(second) != "" && string(second) != "RCV2\x00\x00\x00\x00" {
			return false
		}
		if !ok {
			text := "open failed: No such file or directory"
			_, _ = s.Write(message("FAIL", len(text), []byte(text)))
			return false
		}
		for data := file.data; len(data) > 0; {
			n := min(len(data), 65536)
			_, _ = s.Write(message("DATA", n, data[:n]))
			data = data[n:]
		}
		_, _ = s.Write(message("DONE", 0))
	case "SND2":
		second = second[:12]
		_, _ = io.ReadFull(s, second)
		if string(second[:4]) != "SND2" || !bytes.Equal(second[8:], u32(0)) {
			return false
		}
		file.mode = binary.LittleEndian.Uint32(second[4:])
		return f.receive(s, string(path), file.mode)
	case "SEND":
		at := strings.LastIndexByte(string(path), ',')
		mode, _ := strconv.ParseUint(string(path[at+1:]), 10, 32)
		return f.receive(s, string(path[:at]), uint32(mode))
	default:
		return false
	}
	return true
}

// receive takes a file in. After a failure it drains, as adbd does.
func (f *fileService) receive(s *adbtest.Service, path string, mode uint32) bool {
	if f.fail != "" {
		_, _ = s.Write(message("FAIL", len(f.fail), []byte(f.fail)))
	}
	file := remoteFile{mode: mode}
	for {
		var head [8]byte
		if _, err := io.ReadFull(s, head[:]); err != nil {
			return false
		}
		n := binary.LittleEndian.Uint32(head[4:])
		if string(head[:4]) == "DONE" {
			file.mtime = n
			break
		}
		if string(head[:4]) != "DATA" || n > 65536 {
			return false
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(s, data); err != nil {
			return false
		}
		file.data = append(file.data, data...)
	}
	if f.fail != "" {
		return false
	}
	f.files[path] = file
	_, _ = s.Write(message("OKAY", 0))
	return true
}

// stat2 is error, dev, ino, mode, nlink, uid, gid, size, atime, mtime, ctime.
func stat2(number int, f remoteFile) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(number))
	b = le.AppendUint64(b, 11)
	b = le.AppendUint64(b, 12)
	for _, n := range []uint32{f.mode, 1, 2000, 2001} {
		b = le.AppendUint32(b, n)
	}
	b = le.AppendUint64(b, uint64(len(f.data)))
	for _, n := range []uint32{5, f.mtime, 6} {
		b = le.AppendUint64(b, uint64(n))
	}
	return b
}

func syncConn(t *testing.T, f *fileService) *adb.Sync {
	t.Helper()
	s, err := phoneUSB(t, f.phone(), 512, adb.Options{}).Sync(within(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func bothVersions(t *testing.T, test func(t *testing.T, f *fileService, s *adb.Sync)) {
	for name, v2 := range map[string]bool{"v1": false, "v2": true} {
		t.Run(name, func(t *testing.T) {
			f := &fileService{v2: v2, files: map[string]remoteFile{}}
			test(t, f, syncConn(t, f))
		})
	}
}

func TestSyncSendStatReceive(t *testing.T) {
	bothVersions(t, func(t *testing.T, f *fileService, s *adb.Sync) {
		ctx := within(t)
		mtime := time.Unix(1_700_000_000, 5)
		// 492 and the like put SEND's bytes on packet boundaries.
		for _, size := range []int{0, 1, 63, 64, 65, 484, 492, 504, 511, 512, 513, 1024, 1531, 65536, 65537, 1_000_003} {
			path := "/sdcard/a, b/" + strconv.Itoa(size)
			if err := s.Send(ctx, bytes.NewReader(pattern(size)), path, 0o640, mtime); err != nil {
				t.Fatalf("%d: %v", size, err)
			}
			info, err := s.Stat(ctx, path)
			if err != nil || info.Size() != int64(size) || info.Mode() != 0o640 || info.ModTime().Unix() != mtime.Unix() || info.Name() != strconv.Itoa(size) {
				t.Fatalf("%d: %+v, %v", size, info, err)
			}
			var got bytes.Buffer
			if err := s.Receive(ctx, path, &got); err != nil || !bytes.Equal(got.Bytes(), pattern(size)) {
				t.Fatalf("%d: %d bytes, %v", size, got.Len(), err)
			}
		}
	})
}

func TestSyncGoesOnAfterFailures(t *testing.T) {
	bothVersions(t, func(t *testing.T, f *fileService, s *adb.Sync) {
		ctx := within(t)
		broken := errors.New("disk on fire")
		for range 2 {
			var said *adb.SyncError
			err := s.Receive(ctx, "/none", io.Discard)
			if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &said) || said.Op != "receive" || said.Path != "/none" {
				t.Errorf("receive: %v", err)
			}
			if _, err := s.Stat(ctx, "/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stat: %v", err)
			}
			f.files["/full"] = remoteFile{data: pattern(100_000), mode: 0o100600}
			if err := s.Receive(ctx, "/full", failingWriter{broken}); !errors.Is(err, broken) {
				t.Errorf("receive into a broken writer: %v", err)
			}
			if err := s.Send(ctx, failingReader{broken}, "/half", 0o600, time.Now()); !errors.Is(err, broken) {
				t.Errorf("send from a broken reader: %v", err)
			}
			if err := s.Send(ctx, strings.NewReader("x"), "/ok", 0o600, time.Now()); err != nil {
				t.Errorf("after failures: %v", err)
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if _, ok := f.files["/half"]; ok {
			t.Error("a file without an end was kept")
		}
	})
}

// endless counts what was read of it.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	e.n += len(p)
	return len(p), nil
}

func TestSyncSendStopsAtTheFirstFail(t *testing.T) {
	bothVersions(t, func(t *testing.T, f *fileService, s *adb.Sync) {
		f.mu.Lock()
		f.fail = "write failed: No space left on device"
		f.mu.Unlock()
		source := &endless{}
		err := s.Send(within(t), source, "/sdcard/big", 0o644, time.Now())
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
		if source.n > 50<<20 {
			t.Errorf("%d bytes were sent to a phone that had failed", source.n)
		}
	})
}

// A phone that has failed need not take what is being sent.
func TestSyncSendStopsWhenThePhoneFailsAndStopsReading(t *testing.T) {
	dialogue(t, adb.Options{IdleTimeout: time.Minute}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("sync:")
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectArgs(adb.CommandWrite, id, 7) // and no OKAY
		p.SendData(adb.CommandWrite, 7, id, message("FAIL", 4, []byte("oops")))
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		s, err := c.Sync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var said *adb.SyncError
		err = s.Send(t.Context(), &endless{}, "/x", 0o600, time.Now())
		if !errors.As(err, &said) || said.Message != "oops" || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// slowSource yields a first part at once and then a byte a second.
type slowSource struct{ first int }

func (r *slowSource) Read(p []byte) (int, error) {
	if r.first > 0 {
		n := min(len(p), r.first)
		r.first -= n
		return n, nil
	}
	time.Sleep(time.Second)
	return 1, nil
}

// What the source yields next is not waited for to fill a packet.
func TestSyncSendOfASlowSourceStopsAtTheFirstFail(t *testing.T) {
	dialogue(t, adb.Options{MaxPayload: adb.MaxPayloadV1}, func(p *adbtest.Peer) {
		p.Accept()
		id := p.ExpectOpen("sync:")
		p.Send(adb.CommandOkay, 7, id)
		p.ExpectArgs(adb.CommandWrite, id, 7)
		p.Send(adb.CommandOkay, 7, id)
		p.SendData(adb.CommandWrite, 7, id, message("FAIL", 4, []byte("oops")))
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		s, err := c.Sync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var said *adb.SyncError
		err = s.Send(t.Context(), &slowSource{first: 5000}, "/x", 0o600, time.Now())
		if !errors.As(err, &said) || time.Since(start) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestSyncFailTexts(t *testing.T) {
	for text, want := range map[string]error{
		"couldn't create file: Permission denied":         fs.ErrPermission,
		"couldn't create file: Read-only file system":     syscall.EROFS,
		"couldn't create file: Is a directory":            syscall.EISDIR,
		"secure_mkdirs failed: Operation not permitted":   fs.ErrPermission,
		"couldn't create file: No such file or directory": fs.ErrNotExist,
	} {
		f := &fileService{files: map[string]remoteFile{}, fail: text}
		err := syncConn(t, f).Send(within(t), strings.NewReader("x"), "/x", 0o600, time.Now())
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSyncRefusesArguments(t *testing.T) {
	f := &fileService{files: map[string]remoteFile{}}
	s, ctx := syncConn(t, f), within(t)
	if err := s.Send(ctx, strings.NewReader(""), "/x", fs.ModeSymlink|0o777, time.Now()); err == nil {
		t.Error("symlink sent")
	}
	for _, path := range []string{"", "/" + strings.Repeat("x", 1024)} {
		if err := s.Send(ctx, strings.NewReader(""), path, 0o600, time.Now()); err == nil {
			t.Errorf("path of %d bytes", len(path))
		}
		if _, err := s.List(ctx, path); err == nil {
			t.Errorf("path of %d bytes", len(path))
		}
	}
	for op, err := range map[string]error{
		"send":    s.Send(ctx, strings.NewReader(""), "/x\x00y", 0o600, time.Now()),
		"receive": s.Receive(ctx, "/x\x00y", io.Discard),
	} {
		if err == nil || !strings.Contains(err.Error(), "NUL") {
			t.Errorf("%s with a NUL in the path: %v", op, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Receive(ended, "/x", io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Close()
	s.Close()
	if err := s.Receive(ctx, "/x", io.Discard); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func dirent(v2 bool, name string, f remoteFile) []byte {
	if v2 {
		return bytes.Join([][]byte{[]byte("DNT2"), stat2(0, f), u32(len(name)), []byte(name)}, nil)
	}
	return message("DENT", int(f.mode), u32(len(f.data)), u32(int(f.mtime)), u32(len(name)), []byte(name))
}

// listEnd is DONE, padded to the size of an entry.
func listEnd(v2 bool) []byte {
	if v2 {
		return append([]byte("DONE"), make([]byte, 72)...)
	}
	return append([]byte("DONE"), make([]byte, 16)...)
}

func TestSyncList(t *testing.T) {
	bothVersions(t, func(t *testing.T, f *fileService, s *adb.Sync) {
		folder := remoteFile{mode: 0o040771}
		f.files["/d"] = folder
		f.files["/f"] = remoteFile{mode: 0o100600}
		f.list = bytes.Join([][]byte{
			dirent(f.v2, ".", folder), dirent(f.v2, "..", folder),
			dirent(f.v2, "a file", remoteFile{data: pattern(9), mode: 0o100644, mtime: 77}),
			dirent(f.v2, "folder", folder),
			dirent(f.v2, "link", remoteFile{mode: 0o120777}),
			listEnd(f.v2),
		}, nil)
		for range 2 { // the stream stays in step
			got, err := s.List(within(t), "/d")
			if err != nil || len(got) != 3 {
				t.Fatalf("%v, %v", got, err)
			}
			if g := got[0]; g.Name() != "a file" || g.Size() != 9 || g.Mode() != 0o644 || g.ModTime().Unix() != 77 || g.Sys() != uint32(0o100644) {
				t.Errorf("%+v", g)
			}
			if !got[1].IsDir() || got[2].Mode().Type() != fs.ModeSymlink {
				t.Errorf("%v, %v", got[1].Mode(), got[2].Mode())
			}
		}
		f.list = listEnd(f.v2)
		if got, err := s.List(within(t), "/d"); err != nil || len(got) != 0 {
			t.Errorf("empty folder: %v, %v", got, err)
		}
		if _, err := s.List(within(t), "/none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("missing folder: %v", err)
		}
		if _, err := s.List(within(t), "/f"); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("file: %v", err)
		}
		for _, name := range []string{"", "../../etc/passwd", "a/b", "/", "a\x00b", strings.Repeat("x", 1025)} {
			f.list = append(dirent(f.v2, name, folder), listEnd(f.v2)...)
			if _, err := s.List(within(t), "/d"); !errors.Is(err, adb.ErrProtocol) {
				t.Errorf("name %.20q: %v", name, err)
			}
		}
	})
}

func TestSyncHostileAnswers(t *testing.T) {
	for name, answer := range map[string][]byte{
		"DATA too long": message("DATA", 65537),
		"another id":    message("OKAY", 0),
		"FAIL too long": message("FAIL", 1<<30),
		"cut":           []byte("DATA\x05\x00\x00\x00ab"),
	} {
		t.Run(name, func(t *testing.T) {
			p := &adbtest.Phone{Serve: func(_ string, s *adbtest.Service) error {
				_, _ = io.ReadFull(s, make([]byte, 10))
				_, _ = s.Write(answer)
				return nil
			}}
			s, err := phone(t, p, adb.Options{}).Sync(within(t))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Receive(within(t), "/x", io.Discard)
			if !errors.Is(err, adb.ErrProtocol) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSyncIdlePhone(t *testing.T) {
	dialogue(t, adb.Options{IdleTimeout: 30 * time.Second}, func(p *adbtest.Peer) {
		p.Accept()
		for range 4 {
			id := p.ExpectOpen("sync:")
			p.Send(adb.CommandOkay, 7, id)
			for p.Read().Command != adb.CommandClose {
				p.Timeout = time.Hour
			}
		}
		p.UntilClosed()
	}, func(t *testing.T, c *adb.Conn) {
		s, err := c.Sync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func() error{
			"receive":    func() error { return s.Receive(t.Context(), "/x", io.Discard) },
			"send":       func() error { return s.Send(t.Context(), &endless{}, "/x", 0o600, time.Now()) },
			"send empty": func() error { return s.Send(t.Context(), strings.NewReader(""), "/x", 0o600, time.Now()) },
		} {
			start := time.Now()
			if err := call(); !errors.Is(err, adb.ErrTimeout) {
				t.Errorf("%s: %v", name, err)
			}
			if d := time.Since(start); d < 30*time.Second || d > 32*time.Second {
				t.Errorf("%s: noticed after %v", name, d)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Receive(ctx, "/x", io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
