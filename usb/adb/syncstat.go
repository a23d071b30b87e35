package adb

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"
)

// FileInfo describes a file on the phone; it implements fs.FileInfo.
type FileInfo struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
	posix   uint32
}

var _ fs.FileInfo = (*FileInfo)(nil)

// Name returns the last part of the path.
func (f *FileInfo) Name() string { return f.name }

// Size returns the length in bytes. Phones without stat_v2 give it modulo 4 GiB.
func (f *FileInfo) Size() int64 { return f.size }

// Mode returns type and permission bits; fs.ModeIrregular if the phone could
// not tell.
func (f *FileInfo) Mode() fs.FileMode { return f.mode }

// ModTime returns the time of the last change, in whole seconds.
func (f *FileInfo) ModTime() time.Time { return f.modTime }

// IsDir reports whether it is a folder.
func (f *FileInfo) IsDir() bool { return f.mode.IsDir() }

// Sys returns the Linux st_mode as a uint32.
func (f *FileInfo) Sys() any { return f.posix }

// Stat describes a file. It follows symbolic links on phones with stat_v2
// (Android 8 and later); older phones describe the link itself. A missing file
// is an error that is fs.ErrNotExist. See Receive for what blocks.
func (s *Sync) Stat(ctx context.Context, name string) (*FileInfo, error) {
	return s.stat(ctx, name, syncStat2)
}

// Lstat is Stat without following a symbolic link.
func (s *Sync) Lstat(ctx context.Context, name string) (*FileInfo, error) {
	return s.stat(ctx, name, syncLstat2)
}

func (s *Sync) stat(ctx context.Context, name, id string) (*FileInfo, error) {
	if !s.conn.HasFeature(FeatureStat2) {
		id = syncStat1
	}
	var info *FileInfo
	err := s.call(ctx, "stat", name, func(t *syncStream) error {
		if _, err := t.Write(syncRequest(id, name)); err != nil {
			return err
		}
		var err error
		info, err = t.readStat(t, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return info, nil
}

// readStat reads the answer to a stat request: 16 bytes, or 72 for version 2.
func (t *syncStream) readStat(r io.Reader, id string) (*FileInfo, error) {
	b := make([]byte, 16)
	if id != syncStat1 {
		b = make([]byte, 72)
	}
	if _, err := io.ReadFull(r, b[:8]); err != nil {
		return nil, err
	}
	if string(b[:4]) == syncFail {
		return nil, t.readFail(r, binary.LittleEndian.Uint32(b[4:]))
	}
	if string(b[:4]) != id {
		return nil, t.unexpected(b[:4])
	}
	if _, err := io.ReadFull(r, b[8:]); err != nil {
		return nil, err
	}
	t.inStep = true
	name := path.Base(t.path)
	if id == syncStat1 {
		info, missing := decodeStat1(name, b[4:])
		if missing {
			return nil, &SyncError{Op: t.op, Path: t.path, Message: "no such file, or not accessible", Err: fs.ErrNotExist}
		}
		return info, nil
	}
	info, number := decodeStat2(name, b[4:])
	if number != 0 {
		err := errnoOf(number)
		message := "error " + syscall.Errno(number).Error()
		if err != nil {
			message = err.Error()
		}
		return nil, &SyncError{Op: t.op, Path: t.path, Message: message, Err: err}
	}
	return info, nil
}

// decodeStat1 decodes u32 mode, size, mtime; all zero means there is no file.
func decodeStat1(name string, b []byte) (info *FileInfo, missing bool) {
	le := binary.LittleEndian
	mode, size, mtime := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	return newFileInfo(name, mode, uint64(size), int64(mtime)), mode == 0 && size == 0 && mtime == 0
}

// decodeStat2 decodes u32 error, u64 dev, ino, u32 mode, nlink, uid, gid, u64
// size, i64 atime, mtime, ctime.
func decodeStat2(name string, b []byte) (info *FileInfo, number uint32) {
	le := binary.LittleEndian
	return newFileInfo(name, le.Uint32(b[20:]), le.Uint64(b[36:]), int64(le.Uint64(b[52:]))), le.Uint32(b)
}

func newFileInfo(name string, posix uint32, size uint64, mtime int64) *FileInfo {
	return &FileInfo{
		name: name, size: int64(min(size, 1<<63-1)), mode: fileMode(posix),
		modTime: time.Unix(mtime, 0), posix: posix,
	}
}

// fileMode translates Linux's st_mode.
func fileMode(posix uint32) fs.FileMode {
	mode := fs.FileMode(posix & 0o777)
	switch posix & 0o170000 {
	case regularFile:
	case 0o040000:
		mode |= fs.ModeDir
	case 0o120000:
		mode |= fs.ModeSymlink
	case 0o010000:
		mode |= fs.ModeNamedPipe
	case 0o140000:
		mode |= fs.ModeSocket
	case 0o060000:
		mode |= fs.ModeDevice
	case 0o020000:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	default:
		mode |= fs.ModeIrregular
	}
	if posix&0o4000 != 0 {
		mode |= fs.ModeSetuid
	}
	if posix&0o2000 != 0 {
		mode |= fs.ModeSetgid
	}
	if posix&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// List returns the entries of a folder in the phone's order, without "." and
// "..", as Lstat would describe them. More than 200 000 entries are
// ErrTooLarge; a name that could lead out of the folder is an ErrProtocol. See
// Receive for what blocks.
func (s *Sync) List(ctx context.Context, name string) ([]*FileInfo, error) {
	id, entry := syncList1, syncDirent1
	if s.conn.HasFeature(FeatureList2) {
		id, entry = syncList2, syncDirent2
	}
	var entries []*FileInfo
	dots := false
	err := s.call(ctx, "list", name, func(t *syncStream) error {
		if _, err := t.Write(syncRequest(id, name)); err != nil {
			return err
		}
		var err error
		entries, dots, err = t.readList(t, entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 && !dots {
		// Phones answer the same for a folder that does not exist or may not
		// be read.
		info, err := s.Stat(ctx, name)
		if err != nil {
			var said *SyncError
			if errors.As(err, &said) {
				said.Op = "list"
			}
			return nil, err
		}
		if !info.IsDir() && info.Mode()&fs.ModeSymlink == 0 {
			return nil, &SyncError{Op: "list", Path: name, Message: "not a folder", Err: syscall.ENOTDIR}
		}
	}
	return entries, nil
}

// readList reads entries until DONE, which is padded to the size of an entry.
// dots reports whether "." or ".." was among them.
func (t *syncStream) readList(r io.Reader, id string) (entries []*FileInfo, dots bool, err error) {
	b := make([]byte, 20)
	if id == syncDirent2 {
		b = make([]byte, 76)
	}
	for {
		if _, err := io.ReadFull(r, b[:8]); err != nil {
			return nil, false, err
		}
		if string(b[:4]) == syncFail {
			return nil, false, t.readFail(r, binary.LittleEndian.Uint32(b[4:]))
		}
		if _, err := io.ReadFull(r, b[8:]); err != nil {
			return nil, false, err
		}
		if string(b[:4]) == syncDone {
			t.inStep = true
			return entries, dots, nil
		}
		if string(b[:4]) != id {
			return nil, false, t.unexpected(b[:4])
		}
		name, err := readName(r, binary.LittleEndian.Uint32(b[len(b)-4:]))
		if err != nil {
			return nil, false, err
		}
		if name == "." || name == ".." {
			dots = true
			continue
		}
		if len(entries) >= syncMaxEntries {
			return nil, false, ErrTooLarge
		}
		var info *FileInfo
		if id == syncDirent1 {
			info, _ = decodeStat1(name, b[4:])
		} else {
			info, _ = decodeStat2(name, b[4:])
		}
		entries = append(entries, info)
	}
}

// readName reads the name of an entry and refuses one that is no plain name.
func readName(r io.Reader, length uint32) (string, error) {
	if length == 0 || length > syncMaxPath {
		return "", protocolError("name of %d bytes in a listing", length)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", err
	}
	name := string(b)
	if strings.ContainsAny(name, "/\x00") {
		return "", protocolError("name %q in a listing", name)
	}
	return name, nil
}
