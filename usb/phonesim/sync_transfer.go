package phonesim

import (
	"errors"
	"io"
	"strconv"
	"time"
)

// send serves SEND: "path,mode", then DATA and DONE.
func (y *syncService) send(arg string) error {
	path, digits, ok := cutMode(arg)
	if !ok {
		return y.failEnds("missing , in ID_SEND")
	}
	mode, err := strconv.ParseUint(digits, 0, 32)
	if err != nil {
		return y.failEnds("bad mode %q", digits)
	}
	return y.store(path, uint32(mode), 0)
}

// send2 serves SND2: the path, a second word with mode and flags, then DATA and DONE.
func (y *syncService) send2(path string) error {
	setup, err := y.readWord()
	if err != nil {
		return err
	}
	var flags uint32
	if flags, err = y.readFlags(); err != nil {
		return err
	}
	if setup.id != syncSend2 {
		return y.failEnds("unexpected %q in the place of %s", setup.id, syncSend2)
	}
	if err := y.checkFlags(flags); err != nil {
		return y.failEnds("%v", err)
	}
	return y.store(path, setup.value, flags)
}

// store makes a file of what the host sends.
func (y *syncService) store(path string, linux, flags uint32) error {
	chunks := &chunkReader{sync: y}
	mode, ok := goMode(linux)
	if !ok {
		return y.refuse(chunks, "cannot make a file of mode %o", linux)
	}
	var file io.WriteCloser = discarded{}
	if flags&flagDryRun == 0 {
		var err error
		if file, err = y.system.CreateFile(path, mode, time.Now()); err != nil {
			_, text := errno(err)
			return y.refuse(chunks, "couldn't create file: %s", text)
		}
	}
	err := copyInto(file, chunks, flags)
	if err == nil {
		if timed, ok := file.(TimedFile); ok {
			timed.SetModTime(time.Unix(int64(chunks.mtime), 0))
		}
		if err = file.Close(); err == nil {
			return y.writeWord(syncOkay, 0)
		}
		err = &writeError{err}
	} else if abandoned, ok := file.(AbandonedFile); ok {
		abandoned.Abandon()
	}
	if failed, ok := errors.AsType[*writeError](err); ok {
		_, text := errno(failed.err)
		return y.refuse(chunks, "write failed: %s", text)
	}
	if failed, ok := errors.AsType[*chunkError](chunks.err); ok {
		return y.failEnds("%s", failed.text)
	}
	if chunks.err != nil && chunks.err != io.EOF {
		return chunks.err // the host is gone
	}
	return y.refuse(chunks, "decompression failed: %v", err)
}

// refuse tells the host of a failure at once, takes what it still sends until it is done, and ends the stream.
func (y *syncService) refuse(chunks *chunkReader, format string, args ...any) error {
	if err := y.fail(format, args...); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, chunks); err != nil {
		return err
	}
	return errSyncEnds
}

// writeError is a failure to write a file, to be told from a failure to read what to write.
type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// errorMarker marks the errors of a writer.
type errorMarker struct{ w io.Writer }

func (m errorMarker) Write(b []byte) (int, error) {
	n, err := m.w.Write(b)
	if err != nil {
		err = &writeError{err}
	}
	return n, err
}

// copyInto writes what the host sends into a file, decompressed. All of it has to be part of the compressed data.
func copyInto(file io.Writer, chunks *chunkReader, flags uint32) error {
	plain, err := decompressor(chunks, flags)
	if err != nil {
		return err
	}
	defer plain.Close()
	if _, err := io.Copy(errorMarker{file}, plain); err != nil {
		return err
	}
	rest, err := io.Copy(io.Discard, chunks)
	if err == nil && rest > 0 {
		err = errors.New("data after the end")
	}
	return err
}

// chunkError is something in the place of a DATA chunk that cannot be there.
type chunkError struct{ text string }

func (e *chunkError) Error() string { return e.text }

// chunkReader reads the data in DATA chunks up to DONE, which is io.EOF.
type chunkReader struct {
	sync  *syncService
	left  int
	mtime uint32 // seconds; there when err is io.EOF
	err   error
}

func (c *chunkReader) Read(b []byte) (int, error) {
	for c.left == 0 && c.err == nil {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.sync.r.Read(b[:min(len(b), c.left)])
	c.left -= n
	if err != nil {
		c.err = io.ErrUnexpectedEOF
	}
	return n, c.err
}

// next reads the head of a chunk.
func (c *chunkReader) next() error {
	head, err := c.sync.readWord()
	switch {
	case err != nil:
		return io.ErrUnexpectedEOF
	case head.id == syncDone:
		c.mtime = head.value
		return io.EOF
	case head.id != syncData:
		return &chunkError{"unexpected " + strconv.Quote(head.id) + " among the data"}
	case head.value > maxSyncData:
		return &chunkError{"oversize data message"}
	}
	c.left = int(head.value)
	return nil
}

// receive2 serves RCV2: the path, a second word with flags.
func (y *syncService) receive2(path string) error {
	setup, err := y.readWord()
	if err != nil {
		return err
	}
	if setup.id != syncRecv2 {
		return y.failEnds("unexpected %q in the place of %s", setup.id, syncRecv2)
	}
	if err := y.checkFlags(setup.value &^ flagDryRun); err != nil || setup.value&flagDryRun != 0 {
		return y.failEnds("bad flags %08x", setup.value)
	}
	return y.receive(path, setup.value)
}

// receive sends a file to the host.
func (y *syncService) receive(path string, flags uint32) error {
	file, err := y.system.OpenFile(path)
	if err != nil {
		_, text := errno(err)
		return y.failEnds("open failed: %s", text)
	}
	defer file.Close()
	out := &chunkWriter{sync: y}
	packed := compressor(out, flags)
	if _, err := io.CopyBuffer(writerOnly{packed}, file, make([]byte, maxSyncData)); err != nil {
		packed.Close()
		if out.err != nil {
			return out.err
		}
		_, text := errno(err)
		return y.failEnds("read failed: %s", text)
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return y.writeWord(syncDone, 0)
}

// writerOnly hides ReadFrom, so that the copy's buffer has the size it was given.
type writerOnly struct{ io.Writer }

// chunkWriter puts data into DATA chunks.
type chunkWriter struct {
	sync *syncService
	err  error
}

func (c *chunkWriter) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 && c.err == nil {
		n := min(len(b), maxSyncData)
		if c.err = c.sync.writeWord(syncData, uint32(n)); c.err == nil {
			_, c.err = c.sync.w.Write(b[:n])
		}
		b = b[n:]
		written += n
	}
	return written, c.err
}

// discarded is the file of a dry run.
type discarded struct{}

func (discarded) Write(b []byte) (int, error) { return len(b), nil }
func (discarded) Close() error                { return nil }
