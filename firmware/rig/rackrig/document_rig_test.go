//go:build rig

package rackrig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/agent/document/documenttest"
	"phonerack/firmware/action"
	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
)

// readLetter has a task read the file that came with it.
const readLetter = `
name: read a letter
goals: ['^read the letter$']
rules:
  - name: it was read
    when: {last: {tool: read_document, outcome: done}}
    do: {finish: {success: true, message: read}}
  - name: it was not
    when: {last: {tool: read_document}}
    do: {finish: {success: false, message: not read}}
  - name: read it
    do: {read_document: {file: letter.pdf}}
`

// TestADocumentIsReadOnTheBoard shows that the confined child works on arm64, on a read-only root.
func TestADocumentIsReadOnTheBoard(t *testing.T) {
	letter := filepath.Join(t.TempDir(), "letter.pdf")
	if err := os.WriteFile(letter, documenttest.Letter([]string{"The shed is blue."}), 0o600); err != nil {
		t.Fatal(err)
	}
	b := bootRack(t, rackrig.BoardSpec{
		Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Slots: map[int]string{1: "1-2"}, Rules: readLetter,
		Files: map[string]string{"/etc/phonerack/letter.pdf": letter},
	})
	p, err := rackrig.Simulate(rackrig.PhoneSpec{Slot: 1, Port: "1-2", Serial: "SIM0001", Android: 14})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.PlugPhone(b.ctx, p); err != nil {
		t.Fatal(err)
	}
	b.wait(t, action.Ready, 1)
	out, exit := b.ctl(t, "task", "run", "--slot", "1", "--goal", "read the letter", "--input", "letter.pdf=/etc/phonerack/letter.pdf", "--trajectory", "/tmp/letter")
	if exit != 0 {
		t.Errorf("exit code %d\n%s", exit, out)
	}
	if steps := b.sh(t, "cat /tmp/letter/steps.jsonl"); !strings.Contains(steps, "The shed is blue.") {
		t.Errorf("steps\n%s", steps)
	}
}
