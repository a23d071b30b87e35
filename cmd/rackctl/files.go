package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"phonerack/firmware/action"
)

type shellCommand struct {
	slotArg
	Command []string `arg:"" passthrough:"" help:"Command line for the phone's shell."`
}

func (c shellCommand) Run(s *session) error {
	words := c.Command
	if words[0] == "--" { // kong hands it on; nobody means the phone to have it
		words = words[1:]
	}
	args := action.ShellArgs{SlotArgs: c.args(), Command: strings.Join(words, " ")}
	var exit action.Exit
	if err := s.client.Stream(s.ctx, "shell", args, action.Pipes{In: s.stdin, Out: s.stdout, Err: s.stderr}, &exit); err != nil {
		return err
	}
	if exit.Code != 0 {
		return exitCode(exit.Code)
	}
	return nil
}

type pushCommand struct {
	slotArg
	Local  string `arg:"" help:"File on this machine."`
	Remote string `arg:"" help:"Path on the phone; one that ends with / keeps the file's name."`
}

func (c pushCommand) Run(s *session) error {
	f, err := os.Open(c.Local)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no plain file: push files one by one", c.Local)
	}
	remote := c.Remote
	if strings.HasSuffix(remote, "/") {
		remote += filepath.Base(c.Local)
	}
	args := action.PushArgs{SlotArgs: c.args(), Path: remote, Mode: uint32(info.Mode().Perm()), Mtime: info.ModTime().Unix()}
	var done action.Transfer
	if err := s.client.Stream(s.ctx, "push", args, action.Pipes{In: f}, &done); err != nil {
		return err
	}
	return s.transferred(done, remote)
}

func (s *session) transferred(t action.Transfer, to string) error {
	if s.json {
		return s.print(t)
	}
	_, err := fmt.Fprintf(s.stdout, "%d bytes to %s\n", t.Bytes, to)
	return err
}

type pullCommand struct {
	slotArg
	Remote string `arg:"" help:"Path on the phone."`
	Local  string `arg:"" optional:"" default:"." help:"File or folder on this machine."`
}

func (c pullCommand) Run(s *session) error {
	local := c.Local
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		local = filepath.Join(local, path.Base(c.Remote))
	}
	var done action.Transfer
	err := writeWhole(local, func(w io.Writer) error {
		return s.client.Stream(s.ctx, "pull", action.PullArgs{SlotArgs: c.args(), Path: c.Remote}, action.Pipes{Out: w}, &done)
	})
	if err != nil {
		return err
	}
	return s.transferred(done, local)
}

// writeWhole makes the file appear whole or not at all. A device or a pipe is written to as it is: it must not be replaced.
func writeWhole(name string, fill func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return fmt.Errorf("%s is a folder: name a file, or move it away", name)
		}
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
