package nbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a storage of zeroes.
type memory []byte

func (m memory) ReadAt(p []byte, at int64) (int, error)  { return copy(p, m[at:]), nil }
func (m memory) WriteAt(p []byte, at int64) (int, error) { return copy(m[at:], p), nil }

// client is the other end, as QEMU is.
type client struct {
	t *testing.T
	net.Conn
	cookie uint64
}

func (c *client) send(values ...any) {
	c.t.Helper()
	if err := put(c, values...); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads values of the same sizes and wants these.
func (c *client) expect(values ...any) {
	c.t.Helper()
	var want bytes.Buffer
	if err := put(&want, values...); err != nil {
		c.t.Fatal(err)
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(c, got); err != nil {
		c.t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		c.t.Fatalf("got %x, want %x", got, want.Bytes())
	}
}

// ask sends a request and returns the error of the reply, behind which content of n bytes follows if it is none.
func (c *client) ask(command, flags uint16, offset int64, length int, content []byte, n int) (uint32, []byte) {
	c.t.Helper()
	c.cookie++
	c.send(uint32(magicRequest), flags, command, c.cookie, offset, uint32(length), content)
	var head struct {
		Magic, Error uint32
		Cookie       uint64
	}
	if err := binary.Read(c, binary.BigEndian, &head); err != nil {
		c.t.Fatal(err)
	}
	if head.Magic != magicSimple || head.Cookie != c.cookie {
		c.t.Fatalf("reply %+v to request %d", head, c.cookie)
	}
	back := make([]byte, n)
	if head.Error == 0 {
		if _, err := io.ReadFull(c, back); err != nil {
			c.t.Fatal(err)
		}
	}
	return head.Error, back
}

// connect negotiates as QEMU does: it tries structured replies first.
func connect(t *testing.T, d *Disk) (*client, context.CancelFunc, <-chan error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nbd") // a short path: sockets have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, d) }()
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	c := &client{t: t, Conn: conn}
	t.Cleanup(func() {
		conn.Close()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	c.expect(uint64(magicServer), uint64(magicOption), uint16(3))
	c.send(uint32(3))
	c.send(uint64(magicOption), uint32(8), uint32(0)) // structured replies
	c.expect(uint64(magicReply), uint32(8), uint32(replyUnsupported), uint32(0))
	c.send(uint64(magicOption), uint32(optionGo), uint32(8), uint32(0), uint16(1), uint16(infoBlockSize))
	c.expect(uint64(magicReply), uint32(optionGo), uint32(replyInfo), uint32(12), uint16(infoExport), uint64(d.Size()), uint16(13))
	c.expect(uint64(magicReply), uint32(optionGo), uint32(replyInfo), uint32(14), uint16(infoBlockSize), uint32(512), uint32(4096), uint32(maxRequest))
	c.expect(uint64(magicReply), uint32(optionGo), uint32(replyAck), uint32(0))
	return c, cancel, served
}

func testDisk(t *testing.T) (memory, *Disk) {
	t.Helper()
	m := make(memory, 8*BlockSize)
	d, err := New(m, int64(len(m)))
	if err != nil {
		t.Fatal(err)
	}
	return m, d
}

func TestDialogueOfWritesReadsAndFlushes(t *testing.T) {
	m, d := testDisk(t)
	c, _, _ := connect(t, d)
	content := bytes.Repeat([]byte{7}, BlockSize)
	if e, _ := c.ask(commandWrite, 0, BlockSize, BlockSize, content, 0); e != 0 {
		t.Fatalf("write: error %d", e)
	}
	if m[BlockSize] != 0 {
		t.Error("a write without flush is on the disk")
	}
	if e, got := c.ask(commandRead, 0, BlockSize, BlockSize, nil, BlockSize); e != 0 || !bytes.Equal(got, content) {
		t.Errorf("read: error %d, another content", e)
	}
	if e, _ := c.ask(commandFlush, 0, 0, 0, nil, 0); e != 0 || m[BlockSize] != 7 {
		t.Errorf("flush: error %d, the disk has %d", e, m[BlockSize])
	}
	if e, _ := c.ask(commandWrite, flagFUA, 0, SectorSize, content[:SectorSize], 0); e != 0 || m[0] != 7 {
		t.Errorf("write with FUA: error %d, the disk has %d", e, m[0])
	}
	if e, _ := c.ask(commandRead, 0, d.Size(), SectorSize, nil, 0); e != errnoInvalid {
		t.Errorf("read behind the end: error %d", e)
	}
	if e, _ := c.ask(4, 0, 0, BlockSize, nil, 0); e != errnoInvalid { // TRIM was not offered
		t.Errorf("trim: error %d", e)
	}
	if got := d.Counts(); got != (Counts{Reads: 1, Writes: 2, FUA: 1, Flushes: 1}) {
		t.Errorf("counted %+v", got)
	}
}

func TestADeadDiskIsSilentAndKeepsItsConnection(t *testing.T) {
	_, d := testDisk(t)
	c, cancel, _ := connect(t, d)
	d.CutAtFlush(1)
	c.send(uint32(magicRequest), uint16(0), uint16(commandFlush), uint64(1), uint64(0), uint32(0))
	<-d.Off()
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a disk without power said %d bytes, %v", n, err)
	}
	if _, err := d.Cut(rand.New(rand.NewPCG(1, 1))); err != nil {
		t.Error(err)
	}
	cancel()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection outlives Serve")
	}
}

// duplex reads what a client sends and throws away what it is answered.
type duplex struct {
	io.Reader
	io.Writer
}

// FuzzServe: whatever is sent, the server ends with the input and writes nothing outside the disk.
func FuzzServe(f *testing.F) {
	var hello bytes.Buffer
	_ = put(&hello, uint32(3), uint64(magicOption), uint32(optionGo), uint32(6), uint32(0), uint16(0))
	f.Add(hello.Bytes())
	_ = put(&hello, uint32(magicRequest), uint16(1), uint16(commandWrite), uint64(1), uint64(512), uint32(512), make([]byte, 512))
	_ = put(&hello, uint32(magicRequest), uint16(0), uint16(commandRead), uint64(2), uint64(0), uint32(4096))
	_ = put(&hello, uint32(magicRequest), uint16(0), uint16(commandFlush), uint64(3), uint64(0), uint32(0))
	f.Add(hello.Bytes())
	f.Add([]byte{0, 0, 0, 1, 'I', 'H', 'A', 'V', 'E', 'O', 'P', 'T', 0, 0, 0, 6, 0, 0, 0, 4, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, input []byte) {
		_, d := testDisk(t)
		if err := serve(duplex{bytes.NewReader(input), io.Discard}, d); err == nil {
			t.Error("the server ended without a reason")
		}
	})
}
