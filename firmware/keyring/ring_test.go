package keyring

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/firmware/remembered"
	"phonerack/usb/adb"
)

const passphrase = "correct horse battery"

// rack is a ring with its phones and its clock.
type rack struct {
	*Ring
	dir   string
	known []remembered.Phone
	clock time.Time
}

func open(t *testing.T, dir string) *rack {
	t.Helper()
	r := &rack{dir: dir, clock: time.Unix(1e9, 0)}
	r.reopen(t)
	return r
}

// reopen is a restart.
func (r *rack) reopen(t *testing.T) {
	t.Helper()
	var err error
	r.Ring, err = Open(r.dir, func() ([]remembered.Phone, error) { return r.known, nil }, func() time.Time { return r.clock })
	if err != nil {
		t.Fatal(err)
	}
}

// proves has a phone prove a key.
func (r *rack) proves(t *testing.T, phone int, key *adb.Key) bool {
	t.Helper()
	r.known[phone].KnowsKey(key.Fingerprint())
	done, err := r.Noted(r.known[phone].Slot, key)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func (r *rack) status(t *testing.T) Status {
	t.Helper()
	s, err := r.Status()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// withPhones is a rack with two phones that know its key and one that takes none.
func withPhones(t *testing.T) *rack {
	t.Helper()
	r := open(t, t.TempDir())
	r.known = []remembered.Phone{{Slot: 1, Serial: "S1"}, {Slot: 2}, {Slot: 3, Serial: "S3"}}
	for i := range 2 {
		r.proves(t, i, r.Keys(1)[0])
	}
	return r
}

func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestTheOldKeyStaysUntilEachPhoneHasTakenTheNewOne(t *testing.T) {
	r := withPhones(t)
	old := r.Keys(1)[0]
	s, err := r.Rotate()
	if err != nil || s.Known != 2 || s.Next == nil || s.Next.Known != 0 || !slices.Equal(s.Next.Missing, []string{"slot 1, S1", "slot 2"}) {
		t.Fatalf("%+v %+v, %v", s, s.Next, err)
	}
	keys := r.Keys(1)
	if len(keys) != 2 || keys[1].Fingerprint() != old.Fingerprint() || keys[0].Fingerprint() != s.Next.Key {
		t.Fatalf("phones are shown %v", keys)
	}
	if r.proves(t, 0, old) || r.proves(t, 0, keys[0]) {
		t.Error("the old key is gone with one phone left")
	}
	r.reopen(t) // in the middle
	if _, err := r.Finish(false); !errors.Is(err, ErrMissing) {
		t.Errorf("finished: %v", err)
	}
	if got := r.status(t); got.Next == nil || got.Next.Left != 1 || got.Next.Known != 1 || files(t, r.dir) != "adbkey adbkey.next" {
		t.Errorf("after a restart: %+v, %s", got, files(t, r.dir))
	}
	if !r.proves(t, 1, r.Keys(2)[0]) {
		t.Error("the last phone has taken it, and nothing happened")
	}
	if got := r.status(t); got.Key != s.Next.Key || got.Next != nil || got.Known != 2 || files(t, r.dir) != "adbkey" {
		t.Errorf("at the end: %+v, %s", got, files(t, r.dir))
	}
	r.reopen(t)
	if got := r.Keys(1); len(got) != 1 || got[0].Fingerprint() != s.Next.Key {
		t.Errorf("after the change phones are shown %v", got)
	}
}

func TestWithoutPhonesAKeyChangesAtOnce(t *testing.T) {
	r := open(t, t.TempDir())
	before := r.status(t).Key
	s, err := r.Rotate()
	if err != nil || s.Next != nil || s.Key == before || files(t, r.dir) != "adbkey" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := r.Finish(true); !errors.Is(err, ErrNotChanging) {
		t.Errorf("%v", err)
	}
	if err := r.Ask(1); !errors.Is(err, ErrNotChanging) {
		t.Errorf("%v", err)
	}
}

func TestAPhoneIsAskedForAWhile(t *testing.T) {
	r := withPhones(t)
	if _, err := r.Rotate(); err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(){
		"time":      func() { r.clock = r.clock.Add(askFor) },
		"an answer": func() { r.Asked(1) },
		"a proof":   func() { r.proves(t, 0, r.Keys(1)[0]) },
	} {
		if err := r.Ask(1); err != nil {
			t.Fatal(err)
		}
		if asked, other := r.Keys(1), r.Keys(2); len(asked) != 1 || len(other) != 2 || asked[0] != other[0] {
			t.Errorf("%s: shown %v and %v", name, asked, other)
		}
		if end(); len(r.Keys(1)) != 2 {
			t.Errorf("%s did not end it", name)
		}
	}
	if r.Asked(1) {
		t.Error("asked, and nobody does")
	}
}

func TestAPersonMayLeavePhonesBehind(t *testing.T) {
	r := withPhones(t)
	s, err := r.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rotate(); !errors.Is(err, ErrChanging) {
		t.Errorf("a second change: %v", err)
	}
	if err := r.Export(new(bytes.Buffer), passphrase); !errors.Is(err, ErrChanging) {
		t.Errorf("a backup of one of two keys: %v", err)
	}
	got, err := r.Finish(true)
	if err != nil || got.Key != s.Next.Key || got.Known != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A power cut leaves the files of before a step or of after it. Each state opens, and no phone loses its key.
func TestEachStepSurvivesAPowerCut(t *testing.T) {
	r := withPhones(t)
	old := r.Keys(1)[0].Fingerprint()
	for _, half := range []string{".adbkey-123", ".adbkey.next-9"} {
		if err := os.WriteFile(filepath.Join(r.dir, half), []byte("hal"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.reopen(t) // while adbkey.next was written
	if files(t, r.dir) != "adbkey" || r.status(t).Key != old {
		t.Errorf("%s", files(t, r.dir))
	}
	s, err := r.Rotate()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 { // all have proved it, and the rename did not come to the disk
		r.known[i].KnowsKey(s.Next.Key)
	}
	r.reopen(t)
	if keys := r.Keys(1); len(keys) != 2 || keys[1].Fingerprint() != old {
		t.Errorf("phones are shown %v", keys)
	}
	if !r.proves(t, 0, r.Keys(1)[0]) {
		t.Error("the next proof did not finish the change")
	}
	if err := os.WriteFile(filepath.Join(r.dir, nextFile), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(r.dir, nil, time.Now); err == nil {
		t.Error("a damaged key was overlooked")
	}
}

// backup is one, made once: a passphrase costs time.
var backup = sync.OnceValues(func() (string, *adb.Key) {
	dir, err := os.MkdirTemp("", "keyring")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	r, err := Open(dir, func() ([]remembered.Phone, error) { return nil, nil }, time.Now)
	if err != nil {
		panic(err)
	}
	var out strings.Builder
	if err := r.Export(&out, passphrase); err != nil {
		panic(err)
	}
	return out.String(), r.key
})

func TestACardIsReplaced(t *testing.T) {
	text, key := backup()
	r := withPhones(t) // the new card has met two phones already, which were let in by hand
	r.known = append(r.known, remembered.Phone{Slot: 4, Keys: []string{key.Fingerprint()}})
	s, err := r.Import(strings.NewReader(text), passphrase)
	if err != nil || s.Next == nil || s.Next.Key != key.Fingerprint() || s.Next.Known != 1 || s.Next.Left != 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := r.Keys(1); got[0].Fingerprint() != key.Fingerprint() {
		t.Errorf("phones are shown %v", got)
	}
	if _, err := r.Finish(true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Import(strings.NewReader(text), passphrase); !errors.Is(err, ErrSameKey) {
		t.Errorf("the same key again: %v", err)
	}
}

func TestABackupIsRefused(t *testing.T) {
	text, _ := backup()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(small)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := encrypt(der, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text))
	damaged := bytes.Clone(block.Bytes)
	damaged[len(damaged)-20] ^= 1 // the last block but one: the padding comes out wrong
	again := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	for name, c := range map[string]struct {
		text, words string
		want        error
	}{
		"nothing":              {"", passphrase, ErrBackup},
		"text":                 {"secretsecret", passphrase, ErrBackup},
		"another passphrase":   {text, "correct horse batterY", ErrPassphrase},
		"no passphrase":        {text, "", ErrPassphrase},
		"damaged":              {again(encryptedType, damaged), passphrase, ErrPassphrase},
		"cut":                  {again(encryptedType, block.Bytes[:len(block.Bytes)-16]), passphrase, ErrBackup},
		"more behind it":       {again(encryptedType, append(bytes.Clone(block.Bytes), 0)), passphrase, ErrBackup},
		"two keys":             {text + text, passphrase, ErrBackup},
		"1024 bits":            {again("PRIVATE KEY", der), "", ErrBackup},
		"1024 bits, encrypted": {again(encryptedType, sealed), passphrase, ErrBackup},
		"a certificate":        {again("CERTIFICATE", []byte("secretsecret")), "", ErrBackup},
		"too long":             {text + strings.Repeat("\n", maxBackup), passphrase, ErrBackup},
	} {
		r := open(t, t.TempDir())
		before := r.status(t)
		if _, err := r.Import(strings.NewReader(c.text), c.words); !errors.Is(err, c.want) || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		if after := r.status(t); after.Key != before.Key || after.Next != nil || files(t, r.dir) != "adbkey" {
			t.Errorf("%s: the key has changed", name)
		}
	}
	r := open(t, t.TempDir())
	if err := r.Export(new(bytes.Buffer), "elf letters"); !errors.Is(err, ErrShort) {
		t.Errorf("a passphrase of 11 characters: %v", err)
	}
}

// openssl judges the form of a backup, both ways.
func TestOpensslReadsABackupAndWritesOne(t *testing.T) {
	text, key := backup()
	if strings.Contains(text, "BEGIN PRIVATE KEY") {
		t.Fatal("the backup is plain")
	}
	dir := t.TempDir()
	openssl := func(in string, args ...string) []byte {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "openssl", args...)
		cmd.Stdin, cmd.Env = strings.NewReader(in), append(os.Environ(), "WORDS="+passphrase)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("openssl %v: %v: it is needed by this test", args, err)
		}
		return out
	}
	plain := openssl(text, "pkcs8", "-passin", "env:WORDS")
	got, err := adb.ParseKey(plain)
	if err != nil || got.Fingerprint() != key.Fingerprint() {
		t.Fatalf("openssl read %v, %v", got, err)
	}
	written := openssl(string(plain), "pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA256", "-iter", "5000", "-passout", "env:WORDS")
	for name, backup := range map[string]string{"of openssl": string(written), "adb's own key": string(plain)} {
		r := open(t, filepath.Join(dir))
		if s, err := r.Import(bytes.NewReader([]byte(backup)), passphrase); err != nil && !errors.Is(err, ErrSameKey) || err == nil && s.Key != key.Fingerprint() {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, _ := backup()
	block, _ := pem.Decode([]byte(text))
	f.Add(block.Bytes)
	f.Add([]byte{0x30, 0})
	f.Fuzz(func(t *testing.T, der []byte) {
		if s, err := parse(der); err == nil && (s.iterations > maxIterations || len(s.iv) != 16 || len(s.data)%16 != 0 || len(s.data) == 0) {
			t.Errorf("%+v", s)
		}
	})
}
