//go:build rig

package rig_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/rig"
)

// markVariable is in the environment of every process that a marked test starts, and of those that they start.
const markVariable = "RIG_TEST_MARK"

// marked lists the processes of this machine, less this one, that have the mark in their environment.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range files {
		dir := filepath.Dir(file)
		if environment, _ := os.ReadFile(file); !bytes.Contains(environment, []byte(markVariable+"="+mark)) || dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if len(command) == 0 {
			continue // ended, not yet waited for
		}
		found = append(found, dir+" "+strings.ReplaceAll(string(command), "\x00", " "))
	}
	return found
}

func TestCloseLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv(markVariable, temporary)
	k := kit(t)
	b, err := k.Boot(within(t, limit), rig.BoardConfig{Ports: []string{"1-1", "1-2"}})
	if err != nil {
		t.Fatal(err)
	}
	adbds, err := k.StartAdbd(within(t, limit), 1)
	if err != nil {
		t.Fatal(errors.Join(err, b.Close()))
	}
	p, _ := plug(t, b, "1-1", "SIM0001", phone(t, "SIM0001", true))
	if len(marked(t, temporary)) < 2 {
		t.Error("qemu and adbd are not found")
	}
	if err := errors.Join(b.Close(), b.Close(), adbds[0].Close()); err != nil {
		t.Error(err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("ServeRedir runs on")
	}
	if left := marked(t, temporary); left != nil {
		t.Errorf("processes left: %q", left)
	}
	if left, err := os.ReadDir(temporary); len(left) > 0 || err != nil {
		t.Errorf("files left: %v, %v", left, err)
	}
	if _, _, err := b.Run(within(t, limit), "true"); !errors.Is(err, rig.ErrEnded) {
		t.Errorf("a command on a closed board: %v", err)
	}
	if _, err := b.Plug(within(t, limit), "1-2", phone(t, "SIM0002", true)); !errors.Is(err, rig.ErrEnded) {
		t.Errorf("a phone in a closed board: %v", err)
	}
}

// TestKilledTestLeavesNoProcess starts itself again, and that process dies without a chance to clean up.
func TestKilledTestLeavesNoProcess(t *testing.T) {
	if os.Getenv(markVariable) != "" {
		k := kit(t)
		if _, err := k.Boot(within(t, limit), rig.BoardConfig{}); err != nil {
			t.Fatal(err)
		}
		if _, err := k.StartAdbd(within(t, limit), 1); err != nil {
			t.Fatal(err)
		}
		fmt.Println("UP")
		time.Sleep(limit)
		return
	}
	temporary := t.TempDir()
	cmd := exec.CommandContext(within(t, limit), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), markVariable+"="+temporary, "TMPDIR="+temporary)
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if first := make([]byte, 3); true {
		if _, err := output.Read(first); err != nil || string(first) != "UP\n" {
			t.Errorf("%q, %v", first, err)
		}
	}
	if n := len(marked(t, temporary)); n < 3 {
		t.Errorf("%d processes, want the test, qemu and adbd", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	var left []string
	for range 100 {
		if left = marked(t, temporary); left == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("processes left: %q", left)
}

// The kernel is not the only reader of cpio: what cpio itself makes of an archive is a second opinion.
func TestCpioReadsTheArchive(t *testing.T) {
	archive, want := rig.SampleArchive()
	cmd := exec.CommandContext(within(t, limit), "cpio", "-t", "--quiet")
	cmd.Stdin = bytes.NewReader(archive)
	list, err := cmd.CombinedOutput()
	if err != nil || string(list) != strings.Join(want, "\n")+"\n" {
		t.Errorf("%q, %v", list, err)
	}
}
