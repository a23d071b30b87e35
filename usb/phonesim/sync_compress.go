package phonesim

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The flags of SND2 and RCV2.
const (
	flagBrotli = 1
	flagLZ4    = 2
	flagZstd   = 4
	flagDryRun = 1 << 31
)

var flagFeatures = map[uint32]string{
	flagBrotli: "sendrecv_v2_brotli",
	flagLZ4:    "sendrecv_v2_lz4",
	flagZstd:   "sendrecv_v2_zstd",
	flagDryRun: "sendrecv_v2_dry_run_send",
}

func (y *syncService) readFlags() (uint32, error) {
	var b [4]byte
	_, err := io.ReadFull(y.r, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// checkFlags finds what this daemon cannot do.
func (y *syncService) checkFlags(flags uint32) error {
	if bits.OnesCount32(flags&^flagDryRun) > 1 {
		return fmt.Errorf("multiple compression flags received: %08x", flags)
	}
	for rest := flags; rest != 0; rest &= rest - 1 {
		if feature := flagFeatures[rest&-rest]; feature == "" || !y.release.has(feature) {
			return fmt.Errorf("unknown flags: %08x", flags)
		}
	}
	return nil
}

// decompressor returns the plain data of r, which is one compressed stream, or plain itself.
func decompressor(r io.Reader, flags uint32) (io.ReadCloser, error) {
	switch flags &^ flagDryRun {
	case flagBrotli:
		return io.NopCloser(brotli.NewReader(r)), nil
	case flagLZ4:
		return io.NopCloser(lz4.NewReader(r)), nil
	case flagZstd:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// compressor returns a writer that compresses into w; Close writes the end of the data and leaves w open.
func compressor(w io.Writer, flags uint32) io.WriteCloser {
	switch flags {
	case flagBrotli:
		return brotli.NewWriterLevel(w, 1)
	case flagLZ4:
		return lz4.NewWriter(w)
	case flagZstd:
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			panic(err) // the options are constant
		}
		return z
	}
	return plainWriter{w}
}

// plainWriter compresses nothing.
type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }
