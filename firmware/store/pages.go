package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The file format is bbolt's (internal/common: page.go, meta.go, bucket.go); numbers are in the machine's byte order.
const (
	pageHeaderSize = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize    = 16 // of branch and leaf pages alike
	inBucketSize   = 16 // root page uint64, sequence uint64
	metaSize       = 64
	metaSumOffset  = 56 // the checksum covers what is before it

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	leafIsBucket = 0x01

	noFreelist = ^uint64(0)

	minPageSize = 1 << 10
	maxPageSize = 1 << 16

	// maxPageBytes bounds one page with its overflow: larger than any value that rackd stores.
	maxPageBytes = 256 << 20
)

var native = binary.NativeEndian

// A meta is one of the two roots of a bbolt file; the valid one with the higher transaction id counts.
type meta struct {
	pageSize uint64
	root     uint64 // page of the root bucket
	freelist uint64
	pages    uint64 // high-water mark: ids are below it
	txid     uint64
}

// A survey walks every page that bbolt could touch, by plain reads.
type survey struct {
	r    io.ReaderAt
	size int64
	meta meta
	seen map[uint64]bool
}

// surveyFile finds out whether the pages reachable from the current meta lie inside the file, have the right type, are
// referenced once, and hold elements that lie inside their page. It reports a single valid meta page, which bbolt
// accepts silently although the last transaction may be missing.
func surveyFile(r io.ReaderAt, size int64) (oneMeta bool, err error) {
	if size == 0 {
		return false, errors.New("the file is empty")
	}
	m, valid, err := readMetas(r)
	if err != nil {
		return false, err
	}
	s := &survey{r: r, size: size, meta: m, seen: map[uint64]bool{0: true, 1: true}}
	if m.pages < 2 || m.pages > uint64(size)/m.pageSize {
		return false, fmt.Errorf("the file ends at byte %d, before its page %d", size, m.pages-1)
	}
	if err := s.freelist(); err != nil {
		return false, err
	}
	return valid == 1, s.tree(m.root)
}

// readMetas picks the meta that bbolt would pick and says how many of the two are valid.
func readMetas(r io.ReaderAt) (current meta, valid int, err error) {
	first, firstOK := readMeta(r, 0)
	if firstOK {
		current, valid = first, 1
		if second, ok := readMeta(r, int64(first.pageSize)); ok {
			valid = 2
			if second.txid > first.txid {
				current = second
			}
		}
		return current, valid, nil
	}
	for size := int64(minPageSize); size <= maxPageSize; size <<= 1 {
		if second, ok := readMeta(r, size); ok && second.pageSize == uint64(size) {
			return second, 1, nil
		}
	}
	return meta{}, 0, errors.New("both meta pages are damaged")
}

func readMeta(r io.ReaderAt, offset int64) (meta, bool) {
	buf := make([]byte, metaSize)
	if _, err := r.ReadAt(buf, offset+pageHeaderSize); err != nil {
		return meta{}, false
	}
	sum := fnv.New64a()
	sum.Write(buf[:metaSumOffset])
	if native.Uint32(buf) != metaMagic || native.Uint32(buf[4:]) != metaVersion || native.Uint64(buf[metaSumOffset:]) != sum.Sum64() {
		return meta{}, false
	}
	m := meta{
		pageSize: uint64(native.Uint32(buf[8:])),
		root:     native.Uint64(buf[16:]),
		freelist: native.Uint64(buf[32:]),
		pages:    native.Uint64(buf[40:]),
		txid:     native.Uint64(buf[48:]),
	}
	return m, m.pageSize >= minPageSize && m.pageSize <= maxPageSize && m.pageSize&(m.pageSize-1) == 0
}

// page reads a page with its overflow and marks all of it as seen.
func (s *survey) page(id uint64) (flags uint16, count int, buf []byte, err error) {
	if id < 2 || id >= s.meta.pages {
		return 0, 0, nil, fmt.Errorf("page %d is outside of the file", id)
	}
	offset := int64(id * s.meta.pageSize)
	header := make([]byte, pageHeaderSize)
	if _, err := s.r.ReadAt(header, offset); err != nil {
		return 0, 0, nil, fmt.Errorf("read page %d: %w", id, err)
	}
	if got := native.Uint64(header); got != id {
		return 0, 0, nil, fmt.Errorf("page %d calls itself %d", id, got)
	}
	overflow := uint64(native.Uint32(header[12:]))
	if overflow >= s.meta.pages-id || (overflow+1)*s.meta.pageSize > maxPageBytes {
		return 0, 0, nil, fmt.Errorf("page %d runs past the end of the file", id)
	}
	for i := id; i <= id+overflow; i++ {
		if s.seen[i] {
			return 0, 0, nil, fmt.Errorf("page %d is referenced twice", i)
		}
		s.seen[i] = true
	}
	buf = make([]byte, (overflow+1)*s.meta.pageSize)
	if _, err := s.r.ReadAt(buf, offset); err != nil {
		return 0, 0, nil, fmt.Errorf("read page %d: %w", id, err)
	}
	return native.Uint16(buf[8:]), int(native.Uint16(buf[10:])), buf, nil
}

func (s *survey) freelist() error {
	if s.meta.freelist == noFreelist {
		return nil
	}
	flags, n, buf, err := s.page(s.meta.freelist)
	if err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	if flags != flagFreelist {
		return fmt.Errorf("page %d is not the list of free pages", s.meta.freelist)
	}
	ids, count := buf[pageHeaderSize:], uint64(n)
	if n == 0xFFFF { // the true count does not fit the header
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		return errors.New("the list of free pages is longer than its page")
	}
	for i := range count {
		if id := native.Uint64(ids[8*i:]); id < 2 || id >= s.meta.pages {
			return fmt.Errorf("free page %d is outside of the file", id)
		}
	}
	return nil
}

// tree walks the pages of one bucket and the buckets in it.
func (s *survey) tree(id uint64) error {
	flags, count, buf, err := s.page(id)
	if err != nil {
		return err
	}
	switch flags {
	case flagBranch:
		return s.branch(id, count, buf)
	case flagLeaf:
		return s.leaf(id, count, buf)
	}
	return fmt.Errorf("page %d has the unknown type %#x", id, flags)
}

func (s *survey) branch(id uint64, count int, buf []byte) error {
	if count == 0 {
		return fmt.Errorf("branch page %d is empty", id)
	}
	for i := range count {
		element, ok := elementAt(buf, i)
		if !ok || !within(element, native.Uint32(element), native.Uint32(element[4:]), 0) {
			return fmt.Errorf("key %d of page %d lies outside of it", i, id)
		}
		if err := s.tree(native.Uint64(element[8:])); err != nil {
			return err
		}
	}
	return nil
}

func (s *survey) leaf(id uint64, count int, buf []byte) error {
	for i := range count {
		element, ok := elementAt(buf, i)
		if !ok {
			return fmt.Errorf("key %d of page %d lies outside of it", i, id)
		}
		pos, ksize, vsize := native.Uint32(element[4:]), native.Uint32(element[8:]), native.Uint32(element[12:])
		if !within(element, pos, ksize, vsize) {
			return fmt.Errorf("key %d of page %d lies outside of it", i, id)
		}
		if native.Uint32(element)&leafIsBucket == 0 {
			continue
		}
		start := uint64(pos) + uint64(ksize)
		if err := s.bucket(id, element[start:start+uint64(vsize)]); err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a leaf value that stands for a bucket: a root page, or a small leaf page in the value itself.
func (s *survey) bucket(id uint64, value []byte) error {
	if len(value) < inBucketSize {
		return fmt.Errorf("a bucket on page %d has no header", id)
	}
	if root := native.Uint64(value); root != 0 {
		return s.tree(root)
	}
	inline := value[inBucketSize:]
	if len(inline) < pageHeaderSize || native.Uint16(inline[8:]) != flagLeaf {
		return fmt.Errorf("an inline bucket on page %d is damaged", id)
	}
	return s.leaf(id, int(native.Uint16(inline[10:])), inline)
}

// elementAt returns the page from its i-th element on: offsets count from the element itself.
func elementAt(page []byte, i int) ([]byte, bool) {
	start := pageHeaderSize + i*elementSize
	if start+elementSize > len(page) {
		return nil, false
	}
	return page[start:], true
}

func within(element []byte, pos, ksize, vsize uint32) bool {
	return uint64(pos)+uint64(ksize)+uint64(vsize) <= uint64(len(element))
}
