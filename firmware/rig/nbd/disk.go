package nbd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// Sizes in bytes.
const (
	SectorSize = 512
	BlockSize  = 4096

	// cacheSize bounds what is kept unflushed; a full cache goes to the disk whole, as a real one's does piece by piece.
	cacheSize = 64 << 20
)

const sectors = BlockSize / SectorSize

// ErrOff says that the disk's power was cut.
var ErrOff = errors.New("the disk is off")

// errRange says that a request is not of whole sectors, or lies outside the disk.
var errRange = errors.New("not whole sectors of the disk")

// Storage is what lies behind a disk: a file.
type Storage interface {
	io.ReaderAt
	io.WriterAt
}

// Disk is a disk with a volatile cache. Its methods may be called by several goroutines.
type Disk struct {
	size    int64
	storage Storage
	off     chan struct{} // closed when the power is cut

	mu      sync.Mutex // guards what follows
	isOff   bool
	seq     uint64           // of the last write
	pending map[int64]*block // number of a block -> what was written to it and not flushed
	held    int              // bytes in pending
	trip    int              // flushes until the power goes by itself; 0 for never
	counts  Counts
}

// block has the versions of its sectors since the last flush, each sector's oldest first.
type block [sectors][]version

// version is one write to a sector.
type version struct {
	seq  uint64 // of the write; sectors of one write share it
	data []byte
}

// Counts are what a disk was asked for.
type Counts struct {
	Reads, Writes, FUA, Flushes int
}

// Loss is what a cut did to the blocks that were not flushed.
type Loss struct {
	Blocks  int // that were written and not flushed
	Kept    int // as written last
	Dropped int // as before all of those writes
	Torn    int // something in between
}

func (l Loss) String() string {
	return fmt.Sprintf("%d blocks unflushed: %d kept, %d dropped, %d torn", l.Blocks, l.Kept, l.Dropped, l.Torn)
}

// New puts a disk of size bytes, a multiple of BlockSize, before storage.
func New(storage Storage, size int64) (*Disk, error) {
	if size <= 0 || size%BlockSize != 0 {
		return nil, fmt.Errorf("a disk of %d bytes: must be a multiple of %d", size, BlockSize)
	}
	return &Disk{size: size, storage: storage, off: make(chan struct{}), pending: map[int64]*block{}}, nil
}

// Size is the disk's size in bytes.
func (d *Disk) Size() int64 { return d.size }

// Off is closed when the power is cut, by Cut or by CutAtFlush.
func (d *Disk) Off() <-chan struct{} { return d.off }

// Counts tells what the disk was asked for so far.
func (d *Disk) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

// CutAtFlush takes the power when the n-th flush from now comes, before anything of it is done: the moment at which a
// disk has the most to lose. Cut must follow, to say what is lost.
func (d *Disk) CutAtFlush(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trip = n
}

// check wants an answerable request; d.mu is held.
func (d *Disk) check(length int, offset int64) error {
	switch {
	case d.isOff:
		return ErrOff
	case length < 0 || offset < 0 || offset > d.size || int64(length) > d.size-offset || length%SectorSize != 0 || offset%SectorSize != 0:
		return fmt.Errorf("%d bytes at %d: %w", length, offset, errRange)
	}
	return nil
}

// ReadAt reads what was written last, flushed or not.
func (d *Disk) ReadAt(p []byte, offset int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(len(p), offset); err != nil {
		return 0, err
	}
	d.counts.Reads++
	if n, err := d.storage.ReadAt(p, offset); err != nil && !(errors.Is(err, io.EOF) && n == len(p)) {
		return n, err
	}
	each(p, offset, func(number int64, sector int, part []byte) {
		if b := d.pending[number]; b != nil {
			if v := b[sector]; len(v) > 0 {
				copy(part, v[len(v)-1].data)
			}
		}
	})
	return len(p), nil
}

// each calls f for each sector of p, which lies at offset.
func each(p []byte, offset int64, f func(number int64, sector int, part []byte)) {
	for at := 0; at < len(p); at += SectorSize {
		place := offset + int64(at)
		f(place/BlockSize, int(place%BlockSize)/SectorSize, p[at:at+SectorSize])
	}
}

// Write writes whole sectors; p must not change afterwards. With fua they are on the disk when it returns, and nothing else is.
func (d *Disk) Write(p []byte, offset int64, fua bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(len(p), offset); err != nil {
		return err
	}
	d.counts.Writes++
	if fua {
		d.counts.FUA++
		return d.through(p, offset)
	}
	d.seq++
	each(p, offset, func(number int64, sector int, part []byte) {
		b := d.pending[number]
		if b == nil {
			b = &block{}
			d.pending[number] = b
		}
		b[sector] = append(b[sector], version{d.seq, part})
		d.held += SectorSize
	})
	if d.held > cacheSize {
		return d.destage()
	}
	return nil
}

// through writes past the cache; older versions of the same sectors can no longer come back.
func (d *Disk) through(p []byte, offset int64) error {
	if _, err := d.storage.WriteAt(p, offset); err != nil {
		return err
	}
	each(p, offset, func(number int64, sector int, _ []byte) {
		if b := d.pending[number]; b != nil {
			d.held -= SectorSize * len(b[sector])
			b[sector] = nil
		}
	})
	return nil
}

// Flush puts all that was written onto the disk.
func (d *Disk) Flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(0, 0); err != nil {
		return err
	}
	if d.trip > 0 {
		if d.trip--; d.trip == 0 {
			d.turnOff()
			return ErrOff
		}
	}
	d.counts.Flushes++
	return d.destage()
}

// destage writes the newest versions to the storage.
func (d *Disk) destage() error {
	for number, b := range d.pending {
		for sector, versions := range b {
			if err := d.settle(number, sector, versions, len(versions)); err != nil {
				return err
			}
		}
	}
	clear(d.pending)
	d.held = 0
	return nil
}

// settle makes the first n of a sector's versions those that reached the disk.
func (d *Disk) settle(number int64, sector int, versions []version, n int) error {
	if n == 0 {
		return nil
	}
	_, err := d.storage.WriteAt(versions[n-1].data, number*BlockSize+int64(sector)*SectorSize)
	return err
}

func (d *Disk) turnOff() {
	if !d.isOff {
		d.isOff = true
		close(d.off)
	}
}

// Cut takes the power, or says what is lost after CutAtFlush took it. The storage then holds what is left, and the same random numbers leave the
// same of the same writes. How much stays is drawn first, from all to nothing; then each block is as it was written
// last, or as it was before, or something in between: either as it was after one of the writes to it, or torn
// between sectors.
func (d *Disk) Cut(random *rand.Rand) (Loss, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.turnOff()
	var loss Loss
	keep := random.Float64()
	for _, number := range slices.Sorted(maps.Keys(d.pending)) {
		b := d.pending[number]
		writes := b.writes()
		if len(writes) == 0 { // all of it was written again with FUA
			continue
		}
		loss.Blocks++
		limit := func(int) uint64 { return 0 } // the last write that the disk has of a sector
		switch {
		case random.Float64() < keep:
			loss.Kept++
			limit = func(int) uint64 { return d.seq }
		case random.IntN(2) == 0:
			loss.Dropped++
		default:
			loss.Torn++
			limit = tear(random, writes)
		}
		for sector, versions := range b {
			last := limit(sector)
			n := 0
			for n < len(versions) && versions[n].seq <= last {
				n++
			}
			if err := d.settle(number, sector, versions, n); err != nil {
				return loss, err
			}
		}
	}
	clear(d.pending)
	d.held = 0
	return loss, nil
}

// tear draws up to which write the disk has a block: one for all of its sectors, or one for each.
func tear(random *rand.Rand, writes []uint64) func(sector int) uint64 {
	draw := func() uint64 {
		if n := random.IntN(len(writes) + 1); n > 0 {
			return writes[n-1]
		}
		return 0
	}
	var last [sectors]uint64
	whole, one := random.IntN(3) == 0, draw()
	for i := range last {
		if last[i] = one; !whole {
			last[i] = draw()
		}
	}
	return func(sector int) uint64 { return last[sector] }
}

// writes lists the writes that the block has something of, oldest first.
func (b *block) writes() []uint64 {
	seen := map[uint64]bool{}
	for _, versions := range b {
		for _, v := range versions {
			seen[v.seq] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
