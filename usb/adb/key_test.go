package adb_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"phonerack/usb/adb"
)

// testKeys are shared: making one takes a while under the race detector.
var testKeys = sync.OnceValue(func() []*adb.Key {
	keys := make([]*adb.Key, 3)
	for i := range keys {
		var err error
		if keys[i], err = adb.NewKey(); err != nil {
			panic(err)
		}
	}
	return keys
})

// tool runs a program that the tests need; a missing one is a failure. adb is the one that PHONERACK_ADB names.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	program := name
	if adb := os.Getenv("PHONERACK_ADB"); name == "adb" && adb != "" {
		program = adb
	}
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is needed by this test: run make setup, then make test-unit: %v", name, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, stderr.String())
	}
	return out
}

func TestPublicLineIsWhatAdbWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adbkey")
	tool(t, "adb", "keygen", file)
	key, err := adb.LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(strings.TrimSpace(string(want)), " ")
	if got := key.PublicLine(comment); string(got) != strings.TrimSpace(string(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAdbReadsOurKeyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adbkey")
	key, err := adb.LoadOrCreateKey(file)
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := strings.Cut(string(tool(t, "adb", "pubkey", file)), " ")
	want, _, _ := strings.Cut(string(key.PublicLine("")), " ")
	if got != want {
		t.Errorf("adb pubkey says %s, we say %s", got, want)
	}
}

func TestSignatureIsVerifiedByOpenssl(t *testing.T) {
	dir := t.TempDir()
	key := testKeys()[0]
	token := pattern(adb.TokenSize)
	signature, err := key.Sign(token)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), "token": token, "sig": signature,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := tool(t, "openssl", "pkeyutl", "-verify", "-pubin", "-inkey", filepath.Join(dir, "pub"),
		"-in", filepath.Join(dir, "token"), "-sigfile", filepath.Join(dir, "sig"), "-pkeyopt", "digest:sha1")
	if !bytes.Contains(out, []byte("Verified Successfully")) {
		t.Errorf("openssl: %s", out)
	}
	if len(signature) != 256 {
		t.Errorf("signature of %d bytes", len(signature))
	}
	for _, n := range []int{0, 19, 21, 32} {
		if _, err := key.Sign(make([]byte, n)); err == nil {
			t.Errorf("signed a token of %d bytes", n)
		}
	}
}

// The struct of android_pubkey.cpp, checked by what its numbers mean.
func TestPublicStruct(t *testing.T) {
	key := testKeys()[0]
	line := string(key.PublicLine("me@here"))
	encoded, comment, _ := strings.Cut(line, " ")
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(b) != 524 || len(encoded) != 700 || comment != "me@here" || strings.ContainsAny(line, "\r\n\x00") {
		t.Fatalf("%d bytes, comment %q: %v", len(b), comment, err)
	}
	number := func(from, to int) *big.Int {
		n := new(big.Int)
		for i := to - 1; i >= from; i-- {
			n.Lsh(n, 8).Or(n, big.NewInt(int64(b[i])))
		}
		return n
	}
	n := number(8, 264)
	word := big.NewInt(1 << 32)
	product := new(big.Int).Mul(number(4, 8), n)
	product.Add(product, big.NewInt(1)).Mod(product, word)
	switch {
	case number(0, 4).Int64() != 64:
		t.Error("words")
	case product.Sign() != 0:
		t.Error("n0inv * n is not -1")
	case n.Cmp(key.Public().N) != 0:
		t.Error("modulus")
	case number(264, 520).Cmp(new(big.Int).Exp(big.NewInt(2), big.NewInt(4096), n)) != 0:
		t.Error("rr")
	case number(520, 524).Int64() != 65537:
		t.Error("exponent")
	}

	for _, end := range []string{"", "\x00", "\n", "\r\n"} {
		public, got, err := adb.ParsePublicLine([]byte(line + end))
		if err != nil || !public.Equal(key.Public()) || got != "me@here" {
			t.Errorf("%q: %v, %q", end, err, got)
		}
	}
	b[300] ^= 1 // rr no longer fits
	for _, bad := range []string{"", "x", encoded[:600], encoded[:80] + "\n" + encoded[80:], base64.StdEncoding.EncodeToString(b)} {
		if _, _, err := adb.ParsePublicLine([]byte(bad)); err == nil {
			t.Errorf("accepted %.40q", bad)
		}
	}
	if got := string(key.PublicLine("a\nb\x00c")); !strings.HasSuffix(got, " a?b?c") {
		t.Errorf("comment became %q", got[700:])
	}
}

func TestKeyNeverShows(t *testing.T) {
	key := testKeys()[0]
	pemBytes, err := key.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	again, err := adb.ParseKey(pemBytes)
	if err != nil || !again.Public().Equal(key.Public()) {
		t.Fatalf("round trip: %v", err)
	}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", key)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "key", key)
	encoded, _ := json.Marshal(key)
	out.Write(encoded)
	if want := key.String(); strings.Count(out.String(), strings.TrimPrefix(want, "adb key ")) != 9 {
		t.Errorf("fingerprint missing: %s", out.String())
	}
	if out.Len() > 9*120 {
		t.Errorf("more than a fingerprint: %s", out.String())
	}
}

func TestParseKeyRefuses(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"nothing":     nil,
		"text":        []byte("secretsecret"),
		"certificate": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("secretsecret")}),
		"garbage":     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secretsecret")}),
		"EC":          pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ecDER}),
	} {
		if _, err := adb.ParseKey(data); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLoadOrCreateKey(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "adbkey")
	keys := make([]*adb.Key, 4)
	var wait sync.WaitGroup
	for i := range keys {
		wait.Go(func() {
			var err error
			if keys[i], err = adb.LoadOrCreateKey(file); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, key := range keys {
		if key == nil || !key.Public().Equal(keys[0].Public()) {
			t.Fatal("two callers got different keys")
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}

	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o666} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := adb.LoadOrCreateKey(file); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	// A damaged key is reported, not replaced: phones trust it.
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := adb.LoadOrCreateKey(file); err == nil {
		t.Error("damaged key accepted")
	}
	if data, _ := os.ReadFile(file); string(data) != "damaged" {
		t.Error("damaged key replaced")
	}
	if _, err := adb.LoadOrCreateKey(dir); err == nil {
		t.Error("a folder accepted")
	}
	if _, err := adb.LoadOrCreateKey(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("a missing folder accepted")
	}
}
