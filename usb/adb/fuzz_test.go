package adb

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func FuzzShellReader(f *testing.F) {
	f.Add([]byte("\x01\x03\x00\x00\x00out\x02\x00\x00\x00\x00\x03\x01\x00\x00\x00\x2a"))
	f.Add([]byte("\x01\xff\xff\xff\xffx"))
	f.Add([]byte("\x03\x00\x00\x00\x00"))
	f.Add([]byte("\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		// However the bytes are cut, the same comes out.
		out1, code1, err1 := collectShell(bytes.NewReader(b))
		out2, code2, err2 := collectShell(iotest.OneByteReader(bytes.NewReader(b)))
		if out1 != out2 || code1 != code2 || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q %d %v, byte by byte %q %d %v", out1, code1, err1, out2, code2, err2)
		}
		if err1 != nil && !errors.Is(err1, ErrProtocol) && !errors.Is(err1, ErrNoExitCode) && !errors.Is(err1, io.ErrUnexpectedEOF) {
			t.Fatal(err1)
		}
		if len(out1) > len(b) {
			t.Fatal("more output than input")
		}
	})
}

func collectShell(r io.Reader) (string, int, error) {
	var out bytes.Buffer
	code, err := receiveOutput(r, &out, &out)
	return out.String(), code, err
}

func FuzzSyncAnswers(f *testing.F) {
	f.Add([]byte("DATA\x03\x00\x00\x00abcDONE\x00\x00\x00\x00"))
	f.Add([]byte("FAIL\x04\x00\x00\x00nope"))
	f.Add(append([]byte("STA2"), make([]byte, 68)...))
	f.Add(append([]byte("DENT\xff\x41\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00aDONE"), make([]byte, 16)...))
	f.Add(append(append([]byte("DNT2"), make([]byte, 68)...), "\x02\x00\x00\x00..DONE"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		stream := func() *syncStream { return &syncStream{op: "fuzz", path: "/x"} }
		check := func(t *testing.T, s *syncStream, err error) {
			t.Helper()
			_, said := errors.AsType[*SyncError](err)
			switch {
			case err == nil && !s.inStep:
				t.Fatal("success out of step")
			case err != nil && !said && !errors.Is(err, ErrProtocol) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
				t.Fatal(err)
			}
		}
		s := stream()
		var out bytes.Buffer
		check(t, s, s.receive(bytes.NewReader(b), &out))
		if out.Len() > len(b) {
			t.Fatal("more data than input")
		}
		for _, id := range []string{syncStat1, syncStat2} {
			s = stream()
			_, err := s.readStat(bytes.NewReader(b), id)
			check(t, s, err)
		}
		for _, id := range []string{syncDirent1, syncDirent2} {
			s = stream()
			entries, _, err := s.readList(bytes.NewReader(b), id)
			check(t, s, err)
			for _, entry := range entries {
				if name := entry.Name(); name == "" || name == "." || name == ".." || bytes.ContainsAny([]byte(name), "/\x00") {
					t.Fatalf("name %q", name)
				}
			}
		}
	})
}

func FuzzParsePublicLine(f *testing.F) {
	f.Add([]byte("QAAAAA== user@host\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if public, _, err := ParsePublicLine(b); err == nil && public.N.BitLen() != keyBits {
			t.Fatalf("key of %d bits", public.N.BitLen())
		}
	})
}
