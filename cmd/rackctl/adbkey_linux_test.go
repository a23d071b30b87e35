package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/keyring"
	"phonerack/firmware/remembered"
)

// keyRack is a rack with keys and one phone that knows the first.
type keyRack struct {
	*actiontest.Rack
	ring  *keyring.Ring
	asked int
}

func (k *keyRack) KeyStatus() (keyring.Status, error)           { return k.ring.Status() }
func (k *keyRack) RotateKey() (keyring.Status, error)           { return k.ring.Rotate() }
func (k *keyRack) FinishKey(force bool) (keyring.Status, error) { return k.ring.Finish(force) }
func (k *keyRack) ExportKey(w io.Writer, words string) error    { return k.ring.Export(w, words) }
func (k *keyRack) AskForKey(slot int) error                     { k.asked = slot; return k.ring.Ask(slot) }

func (k *keyRack) ImportKey(r io.Reader, words string) (keyring.Status, error) {
	return k.ring.Import(r, words)
}

func keys(t *testing.T) (*bench, *keyRack) {
	t.Helper()
	phone := remembered.Phone{Slot: 1, Serial: "R5CT"}
	ring, err := keyring.Open(t.TempDir(), func() ([]remembered.Phone, error) { return []remembered.Phone{phone}, nil }, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	phone.KnowsKey(ring.Keys(1)[0].Fingerprint())
	rack := &keyRack{Rack: actiontest.New(), ring: ring}
	return serve(t, rack), rack
}

func TestAKeyGoesFromOneCardToAnother(t *testing.T) {
	const words = "correct horse battery\n"
	old, rack := keys(t)
	key := rack.ring.Keys(1)[0].Fingerprint()
	file := filepath.Join(t.TempDir(), "backup.pem")
	out, errOut, code := old.rackctl(words, "adb-key", "export", file)
	if code != 0 || !strings.HasPrefix(out, key+" is in "+file) || errOut != "Passphrase:\n" {
		t.Fatalf("%d %q %q", code, out, errOut)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), "-----BEGIN ENCRYPTED PRIVATE KEY-----\n") {
		t.Errorf("%.40q, %v", text, err)
	}
	if _, errOut, code = old.rackctl(words, "adb-key", "export", file); code != 1 || !strings.Contains(errOut, "exists: name a new file") {
		t.Errorf("a second backup: %d %q", code, errOut)
	}

	fresh, card := keys(t)
	first := card.ring.Keys(1)[0].Fingerprint()
	if _, errOut, code = fresh.rackctl("another passphrase\n", "adb-key", "import", file); code != 1 || !strings.Contains(errOut, "the passphrase is not that of the backup") {
		t.Errorf("%d %q", code, errOut)
	}
	out, _, code = fresh.rackctl(words, "adb-key", "import", file)
	if want := first + ", taken by 1 phone\nis being replaced by " + key + ", taken by 0 phones\nmissing: slot 1, R5CT\n"; code != 0 || out != want {
		t.Errorf("%d %q", code, out)
	}
	if _, errOut, code = fresh.rackctl("", "adb-key", "rotate", "--finish"); code != 1 || !strings.Contains(errOut, "phones have not taken the new ADB key yet") {
		t.Errorf("%d %q", code, errOut)
	}
	if out, _, code = fresh.rackctl("", "adb-key", "rotate", "--slot", "1"); code != 0 || card.asked != 1 || !strings.Contains(out, "always allow") {
		t.Errorf("%d %q", code, out)
	}
	if out, _, code = fresh.rackctl("", "adb-key", "rotate", "--finish", "--force"); code != 0 || out != key+", taken by 0 phones\n" {
		t.Errorf("%d %q", code, out)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code = fresh.rackctl(words, "adb-key", "import", file); code != 1 || !strings.Contains(errOut, "can be read by others") {
		t.Errorf("%d %q", code, errOut)
	}
	if out, errOut, _ = start(t).rackctl("", "adb-key", "status"); !strings.Contains(errOut, "the board itself") {
		t.Errorf("%q %q", out, errOut)
	}
}

func TestAFailedBackupLeavesNoFile(t *testing.T) {
	b, _ := keys(t)
	dir := t.TempDir()
	for name, words := range map[string]string{"a short passphrase": "short\n", "none": ""} {
		_, errOut, code := b.rackctl(words, "adb-key", "export", filepath.Join(dir, "backup.pem"))
		if code != 1 || !strings.Contains(errOut, "at least 12 characters") {
			t.Errorf("%s: %d %q", name, code, errOut)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
