package protocol

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	if err := errors.Join(WriteJSON(&b, StageFrame, Stage{Step: ReadingPage, Page: 3}), WriteFrame(&b, EndFrame, nil)); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	if want := "S\x00\x00\x00\x18{\"step\":\"page\",\"page\":3}Z\x00\x00\x00\x00"; string(whole) != want {
		t.Fatalf("%q", whole)
	}
	bound := func(t Type) int {
		if t == StageFrame {
			return 24
		}
		return 0
	}
	r := bytes.NewReader(whole)
	for _, want := range []Type{StageFrame, EndFrame} {
		if kind, payload, err := ReadFrame(r, bound); err != nil || kind != want || (len(payload) == 24) != (want == StageFrame) {
			t.Errorf("%q %q %v", kind, payload, err)
		}
	}
	if _, _, err := ReadFrame(r, bound); err != io.EOF {
		t.Error(err)
	}
	for n := 1; n < 29; n++ {
		if _, _, err := ReadFrame(bytes.NewReader(whole[:n]), bound); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d: %v", n, err)
		}
	}
	if _, _, err := ReadFrame(bytes.NewReader([]byte("S\x00\x00\x00\x19")), bound); !errors.Is(err, ErrTooLong) {
		t.Error(err)
	}
}

// TestLongPromisesTakeNoMemory: a frame may claim any length within its bound.
func TestLongPromisesTakeNoMemory(t *testing.T) {
	promise := []byte("I\x3f\xff\xff\xff short")
	if n := testing.AllocsPerRun(10, func() { _, _, _ = ReadFrame(bytes.NewReader(promise), func(Type) int { return 1 << 30 }) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
	if got := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _, _ = ReadFrame(bytes.NewReader(promise), func(Type) int { return 1 << 30 })
		}
	}).AllocedBytesPerOp(); got > 1<<18 {
		t.Errorf("%d bytes for 6", got)
	}
}
