package phonesim

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// System is the Android behind the daemon. Its methods are called from many goroutines at once.
//
// Errors of the file methods wrap fs.ErrNotExist, fs.ErrPermission or a syscall.Errno; the host sees
// the errno that belongs to them.
type System interface {
	// Run runs a command line, or an interactive shell that reads its lines from stdin if cmd is empty.
	// It ends when ctx does. Reading stdin gives io.EOF when the host has closed it or is gone.
	Run(ctx context.Context, cmd string, stdin io.Reader, stdout, stderr io.Writer) (exit int)
	// Property returns a system property such as ro.product.model, or nothing.
	Property(name string) string
	Stat(path string) (fs.FileInfo, error)
	ReadDir(path string) ([]fs.FileInfo, error)
	OpenFile(path string) (io.ReadCloser, error)
	// CreateFile opens a file for writing and makes the folders above it. The file appears, or replaces
	// another, at Close. A symbolic link has fs.ModeSymlink in mode and its target as content.
	//
	// The protocol tells a file's time only after its last byte: mtime is the present, and if the writer is a
	// TimedFile, SetModTime is called before Close. A transfer that fails is never closed; if the writer is an
	// AbandonedFile, Abandon is called instead.
	CreateFile(path string, mode fs.FileMode, mtime time.Time) (io.WriteCloser, error)
}

// LinkSystem is a System that tells a symbolic link from its target. Of other systems Stat is asked for both.
type LinkSystem interface {
	Lstat(path string) (fs.FileInfo, error)
}

// PortSystem is a System with programs that listen on TCP ports of the phone. Streams to other ports are refused.
type PortSystem interface {
	// Port finds who listens on a port. serve speaks to one connection until its reads end, or closes it.
	Port(port int) (serve func(ctx context.Context, conn io.ReadWriteCloser), ok bool)
}

// TimedFile is a file under construction that takes its modification time late.
type TimedFile interface {
	SetModTime(mtime time.Time)
}

// AbandonedFile is a file under construction that holds something worth giving back when it is not finished.
type AbandonedFile interface {
	Abandon()
}
