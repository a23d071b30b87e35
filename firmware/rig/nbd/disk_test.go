package nbd_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"phonerack/firmware/rig/nbd"
)

const diskSize = 16 * nbd.BlockSize

// newFile is a file of zeroes for a disk.
func newFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err == nil {
		err = f.Truncate(diskSize)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func newDisk(t *testing.T, f *os.File) *nbd.Disk {
	t.Helper()
	d, err := nbd.New(f, diskSize)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fill is n bytes of one value.
func fill(value byte, n int) []byte { return bytes.Repeat([]byte{value}, n) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// left reads what the storage has at offset.
func left(t *testing.T, f *os.File, offset int64, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	if _, err := f.ReadAt(p, offset); err != nil {
		t.Fatal(err)
	}
	return p
}

// cut takes the power with a seed of its own.
func cut(t *testing.T, d *nbd.Disk, seed int) nbd.Loss {
	t.Helper()
	loss, err := d.Cut(rand.New(rand.NewPCG(uint64(seed), 1)))
	must(t, err)
	if loss.Blocks != loss.Kept+loss.Dropped+loss.Torn {
		t.Errorf("seed %d: %v", seed, loss)
	}
	return loss
}

func TestWriteBeforeAFlushSurvivesEveryCut(t *testing.T) {
	for seed := range 200 {
		f := newFile(t)
		d := newDisk(t, f)
		must(t, d.Write(fill(1, 3*nbd.BlockSize), 0, false))
		must(t, d.Write(fill(2, nbd.SectorSize), 5*nbd.SectorSize, false))
		must(t, d.Flush())
		must(t, d.Write(fill(3, nbd.BlockSize), 8*nbd.BlockSize, false)) // elsewhere
		cut(t, d, seed)
		want := fill(1, 3*nbd.BlockSize)
		copy(want[5*nbd.SectorSize:], fill(2, nbd.SectorSize))
		if !bytes.Equal(left(t, f, 0, len(want)), want) {
			t.Fatalf("seed %d: what was flushed is not there", seed)
		}
		f.Close()
	}
}

func TestWriteAfterTheLastFlushStaysVanishesOrTears(t *testing.T) {
	var total nbd.Loss
	seen := map[string]bool{}
	for seed := range 200 {
		f := newFile(t)
		d := newDisk(t, f)
		must(t, d.Write(fill(1, diskSize), 0, false))
		must(t, d.Flush())
		must(t, d.Write(fill(2, diskSize), 0, false))
		must(t, d.Write(fill(3, diskSize), 0, false))
		loss := cut(t, d, seed)
		total.Kept, total.Dropped, total.Torn = total.Kept+loss.Kept, total.Dropped+loss.Dropped, total.Torn+loss.Torn
		if loss.Blocks != diskSize/nbd.BlockSize {
			t.Fatalf("seed %d: %v", seed, loss)
		}
		for offset := int64(0); offset < diskSize; offset += nbd.BlockSize {
			block := left(t, f, offset, nbd.BlockSize)
			values := map[byte]bool{}
			for at := 0; at < len(block); at += nbd.SectorSize {
				sector := block[at : at+nbd.SectorSize]
				if !bytes.Equal(sector, fill(sector[0], nbd.SectorSize)) || sector[0] < 1 || sector[0] > 3 {
					t.Fatalf("seed %d: a sector is none that was written", seed)
				}
				values[sector[0]] = true
			}
			switch {
			case len(values) > 1:
				seen["torn between sectors"] = true
			case values[1]:
				seen["as before"] = true
			case values[2]:
				seen["as after the first write"] = true
			case values[3]:
				seen["as written last"] = true
			}
		}
		f.Close()
	}
	if len(seen) != 4 || total.Kept == 0 || total.Dropped == 0 || total.Torn == 0 {
		t.Errorf("200 cuts have only shown %v: %v", seen, total)
	}
}

func TestFUAIsThereAtOnceAndAlone(t *testing.T) {
	vanished := false
	for seed := range 50 {
		f := newFile(t)
		d := newDisk(t, f)
		must(t, d.Write(fill(1, nbd.BlockSize), 0, false)) // older than what comes with FUA: never comes back
		must(t, d.Write(fill(2, nbd.BlockSize), nbd.BlockSize, false))
		must(t, d.Write(fill(3, nbd.BlockSize), 0, true))
		loss := cut(t, d, seed)
		if !bytes.Equal(left(t, f, 0, nbd.BlockSize), fill(3, nbd.BlockSize)) {
			t.Fatalf("seed %d: what was written with FUA is not there", seed)
		}
		if loss.Blocks != 1 {
			t.Errorf("seed %d: %v, where one block was at stake", seed, loss)
		}
		vanished = vanished || bytes.Equal(left(t, f, nbd.BlockSize, nbd.BlockSize), fill(0, nbd.BlockSize))
		f.Close()
	}
	if !vanished {
		t.Error("FUA has flushed other writes: none of them was ever lost")
	}
}

func TestAWriteAfterFUACanVanish(t *testing.T) {
	older := false
	for seed := range 50 {
		f := newFile(t)
		d := newDisk(t, f)
		must(t, d.Write(fill(1, nbd.SectorSize), 0, true))
		must(t, d.Write(fill(2, nbd.SectorSize), 0, false))
		cut(t, d, seed)
		switch left(t, f, 0, 1)[0] {
		case 1:
			older = true
		case 0:
			t.Fatalf("seed %d: both are gone", seed)
		}
		f.Close()
	}
	if !older {
		t.Error("a write without flush was never lost")
	}
}

func TestReadSeesWhatWasWrittenLast(t *testing.T) {
	d := newDisk(t, newFile(t))
	want := make([]byte, diskSize)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		n := (1 + random.IntN(20)) * nbd.SectorSize
		offset := random.IntN((diskSize-n)/nbd.SectorSize+1) * nbd.SectorSize
		must(t, d.Write(fill(byte(i), n), int64(offset), random.IntN(5) == 0))
		copy(want[offset:], fill(byte(i), n))
		if random.IntN(10) == 0 {
			must(t, d.Flush())
		}
		got := make([]byte, diskSize)
		if _, err := d.ReadAt(got, 0); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("after write %d: %v, another content", i, err)
		}
	}
}

func TestTheSameSeedLeavesTheSame(t *testing.T) {
	run := func() []byte {
		f := newFile(t)
		d := newDisk(t, f)
		for i := range 40 {
			must(t, d.Write(fill(byte(i+1), 3*nbd.SectorSize), int64(i*7%120)*nbd.SectorSize, false))
		}
		cut(t, d, 11)
		return left(t, f, 0, diskSize)
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two cuts with one seed differ")
	}
}

func TestCutAtFlush(t *testing.T) {
	f := newFile(t)
	d := newDisk(t, f)
	d.CutAtFlush(2)
	must(t, d.Write(fill(1, nbd.BlockSize), 0, false))
	must(t, d.Flush())
	must(t, d.Write(fill(2, nbd.BlockSize), 0, false))
	if err := d.Flush(); !errors.Is(err, nbd.ErrOff) {
		t.Errorf("the second flush gave %v", err)
	}
	select {
	case <-d.Off():
	default:
		t.Error("the disk does not say that it is off")
	}
	if loss := cut(t, d, 1); loss.Blocks != 1 {
		t.Errorf("%v: the flush at which the power went must not have counted", loss)
	}
}

func TestOffAnswersNothing(t *testing.T) {
	d := newDisk(t, newFile(t))
	cut(t, d, 1)
	_, err := d.ReadAt(make([]byte, nbd.SectorSize), 0)
	for what, err := range map[string]error{"read": err, "write": d.Write(fill(1, nbd.SectorSize), 0, true), "flush": d.Flush()} {
		if !errors.Is(err, nbd.ErrOff) {
			t.Errorf("%s after the cut gave %v", what, err)
		}
	}
}

func TestRequestsOutsideTheDisk(t *testing.T) {
	d := newDisk(t, newFile(t))
	for _, at := range []struct {
		offset int64
		n      int
	}{{-512, 512}, {diskSize, 512}, {diskSize - 512, 1024}, {1, 512}, {0, 511}, {1 << 62, 512}} {
		if err := d.Write(make([]byte, at.n), at.offset, false); err == nil {
			t.Errorf("%d bytes at %d were written", at.n, at.offset)
		}
		if _, err := d.ReadAt(make([]byte, at.n), at.offset); err == nil {
			t.Errorf("%d bytes at %d were read", at.n, at.offset)
		}
	}
	for _, size := range []int64{0, -4096, 4097} {
		if _, err := nbd.New(newFile(t), size); err == nil {
			t.Errorf("a disk of %d bytes", size)
		}
	}
}
