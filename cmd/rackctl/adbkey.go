package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"phonerack/firmware/action"
	"phonerack/firmware/keyring"
)

type keyCommands struct {
	Status keyStatus `cmd:"" help:"Show which key phones know this rack by, and how many do."`
	Export keyExport `cmd:"" help:"Write a backup of the key, encrypted with a passphrase, to a new file."`
	Import keyImport `cmd:"" help:"Take over the key of a backup, or of adb: phones that know it let the rack in without asking."`
	Rotate keyRotate `cmd:"" help:"Replace the key by a new one; the old one stays until each phone has taken the new one."`
}

// passphraseArg says where the passphrase comes from: never from the command line, which others can see.
type passphraseArg struct {
	PassphraseFile string `help:"File of mode 0600 with the passphrase, one line; without it the first line of standard input." placeholder:"FILE"`
}

const maxPassphrase = 1 << 10 // bytes

func (a passphraseArg) read(s *session) (string, error) {
	in := s.stdin
	if a.PassphraseFile != "" {
		f, err := openPrivate(a.PassphraseFile)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	} else {
		fmt.Fprintln(s.stderr, "Passphrase:")
	}
	line, err := bufio.NewReader(io.LimitReader(in, maxPassphrase)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", fmt.Errorf("read the passphrase: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// openPrivate opens a file that nobody but its owner can read.
func openPrivate(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func checkPrivate(f *os.File) error {
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no plain file", f.Name())
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows": // which has no such bits
		return fmt.Errorf("%s can be read by others: make it private with chmod 600, or use a file system that keeps such rights", f.Name())
	}
	return nil
}

type keyStatus struct{}

func (keyStatus) Run(s *session) error { return call(s, "adb_key_status", struct{}{}, s.showKey) }

func (s *session) showKey(k keyring.Status) error {
	_, err := fmt.Fprintf(s.stdout, "%s, taken by %s\n", k.Key, phones(k.Known))
	if k.Next == nil || err != nil {
		return err
	}
	fmt.Fprintf(s.stdout, "is being replaced by %s, taken by %s\n", k.Next.Key, phones(k.Next.Known))
	for _, p := range k.Next.Missing {
		fmt.Fprintf(s.stdout, "missing: %s\n", p)
	}
	if more := k.Next.Left - len(k.Next.Missing); more > 0 {
		fmt.Fprintf(s.stdout, "and %d more\n", more)
	}
	return nil
}

func phones(n int) string {
	if n == 1 {
		return "1 phone"
	}
	return fmt.Sprintf("%d phones", n)
}

type keyExport struct {
	passphraseArg
	File string `arg:"" help:"New file for the backup."`
}

func (c keyExport) Run(s *session) error {
	words, err := c.read(s)
	if err != nil {
		return err
	}
	var k keyring.Status
	err = writePrivate(c.File, func(w io.Writer) error {
		return s.client.Stream(s.ctx, "adb_key_export", action.PassphraseArgs{Passphrase: words}, action.Pipes{Out: w}, &k)
	})
	if err != nil {
		return err
	}
	if s.json {
		return s.print(k)
	}
	_, err = fmt.Fprintf(s.stdout, "%s is in %s: keep it and its passphrase apart, who has both controls every phone\n", k.Key, c.File)
	return err
}

// writePrivate makes a new file that nobody but its owner can read, whole or not at all. It replaces none, and leaves none
// where the file system does not keep the rights, as on a stick with FAT.
func writePrivate(name string, fill func(io.Writer) error) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s exists: name a new file", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := checkPrivate(f); err != nil {
		f.Close()
		return err
	}
	if err := fill(f); err != nil {
		f.Close()
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

type keyImport struct {
	passphraseArg
	File string `arg:"" help:"The backup, or the adbkey of adb; mode 0600."`
}

func (c keyImport) Run(s *session) error {
	f, err := openPrivate(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	first, err := bufio.NewReader(io.LimitReader(f, maxPassphrase)).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	var args action.PassphraseArgs
	if strings.Contains(first, "ENCRYPTED") {
		if args.Passphrase, err = c.read(s); err != nil {
			return err
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var k keyring.Status
	if err := s.client.Stream(s.ctx, "adb_key_import", args, action.Pipes{In: f}, &k); err != nil {
		return err
	}
	if s.json {
		return s.print(k)
	}
	return s.showKey(k)
}

type keyRotate struct {
	Slot   int  `help:"Have the phone in this slot ask about the new key now: tick \"always allow\" and accept." placeholder:"N" xor:"how"`
	Finish bool `help:"End the change; refused while a phone has not taken the new key." xor:"how"`
	Force  bool `help:"With --finish: do not wait for phones that have not taken it. They will ask again."`
}

func (c keyRotate) Run(s *session) error {
	switch {
	case c.Force && !c.Finish:
		return errors.New("--force goes with --finish")
	case c.Finish:
		return call(s, "adb_key_finish", action.FinishArgs{Force: c.Force}, s.showKey)
	case c.Slot != 0:
		if err := s.client.Call(s.ctx, "adb_key_ask", action.SlotArgs{Slot: c.Slot}, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(s.stdout, "the phone in slot %d asks within a minute, for five minutes at most: tick \"always allow\" and accept\n", c.Slot)
		return err
	}
	return call(s, "adb_key_rotate", struct{}{}, s.showKey)
}
