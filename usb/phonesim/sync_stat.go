package phonesim

import (
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"path"
	"time"
)

// Sizes of what describes a file, in bytes, without a name's own bytes.
const (
	entrySize  = 20
	entry2Size = 76
)

// Owner of all files, as the shell user sees most of them, and the device they are on.
const (
	shellUser  = 2000
	dataDevice = 0xfe02
)

// stat answers STAT; a missing file is all zero.
func (y *syncService) stat(name string) error {
	info, err := y.lstat(name)
	b := []byte(syncStat)
	if err != nil {
		b = append(b, make([]byte, 12)...)
	} else {
		b = appendStat(b, info)
	}
	_, err = y.w.Write(b)
	return err
}

// lstat looks at a link and not at its target, if the system can.
func (y *syncService) lstat(name string) (fs.FileInfo, error) {
	if s, ok := y.system.(LinkSystem); ok {
		return s.Lstat(name)
	}
	return y.system.Stat(name)
}

// appendStat appends mode, size and time, 32 bits each.
func appendStat(b []byte, info fs.FileInfo) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, linuxMode(info.Mode()))
	b = le.AppendUint32(b, uint32(info.Size()))
	return le.AppendUint32(b, uint32(unixTime(info.ModTime())))
}

// stat2 answers STA2 and LST2, whose answers have the request's name.
func (y *syncService) stat2(id, name string) error {
	look := y.system.Stat
	if id == syncLstat2 {
		look = y.lstat
	}
	info, err := look(name)
	_, err = y.w.Write(appendStat2([]byte(id), name, info, err))
	return err
}

// appendStat2 appends the 68 bytes that follow the name of an answer, or zeros after the number of an error.
func appendStat2(b []byte, name string, info fs.FileInfo, err error) []byte {
	le := binary.LittleEndian
	if err != nil {
		number, _ := errno(err)
		return append(le.AppendUint32(b, number), make([]byte, 64)...)
	}
	inode := fnv.New64a()
	inode.Write([]byte(path.Clean("/" + name)))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, dataDevice)
	b = le.AppendUint64(b, inode.Sum64())
	b = le.AppendUint32(b, linuxMode(info.Mode()))
	b = le.AppendUint32(b, 1) // links
	b = le.AppendUint32(b, shellUser)
	b = le.AppendUint32(b, shellUser)
	b = le.AppendUint64(b, uint64(info.Size()))
	for range 3 { // access, modification, change
		b = le.AppendUint64(b, uint64(unixTime(info.ModTime())))
	}
	return b
}

// unixTime is a time in seconds; the zero time is 0.
func unixTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// list answers LIST and LIS2. A folder that cannot be read is an empty list, without even "." and "..".
func (y *syncService) list(dir, entry string) error {
	size := entrySize
	if entry == syncEntry2 {
		size = entry2Size
	}
	if infos, err := y.system.ReadDir(dir); err == nil {
		self, err := y.system.Stat(dir)
		if err == nil {
			y.entry(entry, dir, ".", self)
			y.entry(entry, dir, "..", self)
		}
		for _, info := range infos {
			if err := y.entry(entry, dir, info.Name(), info); err != nil {
				return err
			}
		}
	}
	_, err := y.w.Write(append([]byte(syncDone), make([]byte, size-len(syncDone))...))
	return err
}

func (y *syncService) entry(id, dir, name string, info fs.FileInfo) error {
	b := []byte(id)
	if id == syncEntry2 {
		b = appendStat2(b, path.Join(dir, name), info, nil)
	} else {
		b = appendStat(b, info)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	_, err := y.w.Write(append(b, name...))
	return err
}
