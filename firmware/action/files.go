package action

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"phonerack/sync/wire"
)

// ShellArgs are the arguments of shell.
type ShellArgs struct {
	SlotArgs
	Command string `json:"command" doc:"command line for the phone's shell"`
}

func (a *ShellArgs) validate() error {
	if a.Command == "" {
		return errors.New("a command must be given")
	}
	return nil
}

// Exit is the result of shell.
type Exit struct {
	Code int `json:"exit"` // 0 to 255
}

// PushArgs are the arguments of push.
type PushArgs struct {
	SlotArgs
	Path  string `json:"path" doc:"absolute path on the phone"`
	Mode  uint32 `json:"mode,omitempty" doc:"permission bits; 0644 if not given"`
	Mtime int64  `json:"mtime,omitempty" doc:"time of the last change, seconds since the epoch"`
}

func (a *PushArgs) validate() error { return validPath(a.Path) }

// PullArgs are the arguments of pull.
type PullArgs struct {
	SlotArgs
	Path string `json:"path" doc:"absolute path on the phone"`
}

func (a *PullArgs) validate() error { return validPath(a.Path) }

// Transfer is the result of push and pull.
type Transfer struct {
	Bytes int64 `json:"bytes"`
}

func validPath(p string) error {
	switch {
	case !path.IsAbs(p):
		return errors.New("the path on the phone must begin with /")
	case len(p) > maxPath:
		return fmt.Errorf("the path on the phone is longer than %d bytes", maxPath)
	case strings.ContainsRune(p, 0):
		return errors.New("the path on the phone has a zero byte in it")
	}
	return nil
}

const (
	shellTimeout = 30 * time.Minute
	fileTimeout  = 15 * time.Minute
	defaultMode  = 0o644
	maxPath      = 1000 // bytes; what phones take, less what the protocol adds
)

func fileActions() []entry {
	return []entry{
		define(Definition{Name: "shell", Summary: "run a command on a phone", Role: Operator, NeedsLease: true, Streams: Terminal, Timeout: shellTimeout}, shell),
		define(Definition{Name: "push", Summary: "copy a file to a phone", Role: Operator, NeedsLease: true, Idempotent: true, Streams: Upload, Timeout: fileTimeout}, push),
		define(Definition{Name: "pull", Summary: "copy a file from a phone", Role: Operator, Idempotent: true, Streams: Download, Timeout: fileTimeout}, pull),
	}
}

func shell(ctx context.Context, c *call, args *ShellArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	if err := c.fence.Check(); err != nil {
		return nil, err
	}
	code, err := p.Shell(ctx, args.Command, c.pipes)
	return Exit{Code: code}, err
}

func push(ctx context.Context, c *call, args *PushArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	if err := c.fence.Check(); err != nil {
		return nil, err
	}
	mode := fs.FileMode(args.Mode) & fs.ModePerm
	if args.Mode == 0 {
		mode = defaultMode
	}
	mtime := time.Now()
	if args.Mtime != 0 {
		mtime = time.Unix(args.Mtime, 0)
	}
	in := &countingReader{r: c.pipes.In}
	if err := p.Push(ctx, in, args.Path, mode, mtime); err != nil {
		if in.err != nil { // the sender went away, the phone is not to blame
			return nil, badRequest("the file was not sent whole")
		}
		return nil, err
	}
	return Transfer{Bytes: in.n}, nil
}

func pull(ctx context.Context, c *call, args *PullArgs) (any, error) {
	p, err := c.rack.Phone(args.Slot)
	if err != nil {
		return nil, err
	}
	out := &countingWriter{w: c.pipes.Out}
	if err := p.Pull(ctx, args.Path, out); err != nil {
		return nil, err
	}
	return Transfer{Bytes: out.n}, nil
}

type countingReader struct {
	r   io.Reader
	n   int64
	err error // of the reader, not io.EOF
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// slotExists refuses a number that no slot has; a slot that is empty or not ready exists.
func slotExists(r Rack, slot int) error {
	if _, err := r.Phone(slot); wire.Is(err, wire.SlotUnknown) {
		return err
	}
	return nil
}
