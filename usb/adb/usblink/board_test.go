//go:build board

// The tests of this file run on a board with phones on its USB: firmware/rig builds them for the
// emulated one and runs them there. PHONERACK_PHONES says which phones must be found, as port
// paths separated by spaces; their adbd lets everybody in.

package usblink

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/bus"
)

// payloadSizes are the lengths around packet boundaries at which implementations were reported to
// hang (AOSP test_device.py packet_size_regression, adb_client#110).
func payloadSizes() []int {
	sizes := []int{1, 63, 64, 65, 128, 504, 511, 512, 513, 1016, 1023, 1024, 1025, 4096, 16384, 65536}
	for n := range 6 {
		sizes = append(sizes, 507+1024*n)
	}
	return sizes
}

// eachPhone connects to every phone at once and runs f for each of them, all at the same time.
func eachPhone(t *testing.T, f func(ctx context.Context, t *testing.T, d bus.Device, c *adb.Conn)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	devices, err := bus.Scan("")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, d := range devices {
		paths = append(paths, d.Path)
	}
	want := strings.Fields(os.Getenv("PHONERACK_PHONES"))
	slices.SortFunc(want, bus.ComparePaths)
	if len(want) == 0 || !slices.Equal(paths, want) {
		t.Fatalf("phones at %v, want %v", paths, want)
	}
	host, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	}()
	key, err := adb.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	var phones sync.WaitGroup
	for _, d := range devices {
		phones.Go(func() {
			link, err := host.Open(ctx, d)
			if err != nil {
				t.Error(err)
				return
			}
			c, err := adb.Connect(ctx, link, adb.Options{Keys: []*adb.Key{key}})
			if err != nil {
				t.Errorf("%v: %v", d, err)
				return
			}
			defer c.Close()
			f(ctx, t, d, c)
		})
	}
	phones.Wait()
}

func TestBoardPayloadSizesInBothDirections(t *testing.T) {
	eachPhone(t, func(ctx context.Context, t *testing.T, d bus.Device, c *adb.Conn) {
		if err := nothing(ctx, c); err != nil {
			t.Errorf("%v, packets of %d, no payload: %v", d, d.MaxPacket, err)
			return
		}
		for _, n := range payloadSizes() {
			if err := echo(ctx, c, n); err != nil {
				t.Errorf("%v, packets of %d, payload of %d: %v", d, d.MaxPacket, n, err)
				return
			}
		}
		fmt.Printf("sizes-ok %s packets of %d\n", d.Path, d.MaxPacket)
	})
}

// nothing runs what moves no bytes: a stream of nothing but headers, and an empty file there and back.
func nothing(ctx context.Context, c *adb.Conn) error {
	s, err := c.Exec(ctx, "true")
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	if got, err := io.ReadAll(s); err != nil || len(got) > 0 {
		return fmt.Errorf("the output of true is %q, %v", got, err)
	}
	files, err := c.Sync(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	const remote = "/data/local/tmp/empty"
	if err := files.Send(ctx, bytes.NewReader(nil), remote, 0o644, time.Unix(1_700_000_000, 0)); err != nil {
		return err
	}
	var back bytes.Buffer
	if err := files.Receive(ctx, remote, &back); err != nil || back.Len() > 0 {
		return fmt.Errorf("an empty file came back with %d bytes, %v", back.Len(), err)
	}
	info, err := files.Stat(ctx, remote)
	if err == nil && info.Size() != 0 {
		err = fmt.Errorf("an empty file has %d bytes", info.Size())
	}
	return err
}

// echo sends n bytes as one WRTE and wants them back.
func echo(ctx context.Context, c *adb.Conn, n int) error {
	s, err := c.Exec(ctx, "cat")
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	sent := make([]byte, n)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	if _, err := s.Write(sent); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got := make([]byte, n)
	if _, err := io.ReadFull(s, got); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(sent, got) {
		return fmt.Errorf("what came back differs")
	}
	return nil
}

func TestBoardShellExitCodes(t *testing.T) {
	eachPhone(t, func(ctx context.Context, t *testing.T, d bus.Device, c *adb.Conn) {
		for _, want := range []int{0, 1, 5, 127, 255} {
			got, err := c.Shell(ctx, "echo out; echo err >&2; exit "+strconv.Itoa(want))
			if err != nil || got.ExitCode != want || string(got.Stdout) != "out\n" || string(got.Stderr) != "err\n" {
				t.Errorf("%v: exit %d gave %+v, %v", d, want, got, err)
			}
		}
	})
}

// TestBoardLargeFiles pushes 20 MB to each phone and pulls them again. PHONERACK_LARGE may name a
// smaller number of bytes.
func TestBoardLargeFiles(t *testing.T) {
	size := 20_000_000
	if s := os.Getenv("PHONERACK_LARGE"); s != "" {
		var err error
		if size, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	eachPhone(t, func(ctx context.Context, t *testing.T, d bus.Device, c *adb.Conn) {
		for _, n := range []int{0, 1, size} {
			if err := pushPull(ctx, c, d, n); err != nil {
				t.Errorf("%v, %d bytes: %v", d, n, err)
				return
			}
		}
	})
}

func pushPull(ctx context.Context, c *adb.Conn, d bus.Device, n int) error {
	files, err := c.Sync(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	remote := fmt.Sprintf("/data/local/tmp/large-%s-%d", d.Path, n)
	content := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(n), byte(d.Address)})
	_, _ = random.Read(content)
	start := time.Now()
	if err := files.Send(ctx, bytes.NewReader(content), remote, 0o644, time.Unix(1_700_000_000, 0)); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	pushed := time.Since(start)
	start = time.Now()
	var got bytes.Buffer
	if err := files.Receive(ctx, remote, &got); err != nil {
		return fmt.Errorf("pull: %w", err)
	}
	if n > 1_000_000 {
		fmt.Printf("large-ok %s push %.2f MB/s pull %.2f MB/s\n", d.Path, float64(n)/1e6/pushed.Seconds(), float64(n)/1e6/time.Since(start).Seconds())
	}
	if !bytes.Equal(content, got.Bytes()) {
		return fmt.Errorf("pulled %d bytes that differ from the pushed %d", got.Len(), n)
	}
	_, err = c.Shell(ctx, "rm "+remote)
	return err
}
