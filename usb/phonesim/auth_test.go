package phonesim

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hostKeys are made once: it takes a while.
var hostKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	var keys []*rsa.PrivateKey
	for range 2 {
		k, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		keys = append(keys, k)
	}
	return keys
})

// publicLine encodes a key as a host does.
func publicLine(k *rsa.PrivateKey) string {
	little := func(n *big.Int) []byte {
		b := n.FillBytes(make([]byte, 256))
		slices.Reverse(b)
		return b
	}
	word := new(big.Int).Lsh(big.NewInt(1), 32)
	inverse := new(big.Int).ModInverse(new(big.Int).Neg(k.N), word)
	rr := new(big.Int).Exp(big.NewInt(2), big.NewInt(4096), k.N)
	b := binary.LittleEndian.AppendUint32(nil, 64)
	b = binary.LittleEndian.AppendUint32(b, uint32(inverse.Uint64()))
	b = append(append(b, little(k.N)...), little(rr)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(k.E))
	return base64.StdEncoding.EncodeToString(b) + " user@host"
}

func sign(t *testing.T, k *rsa.PrivateKey, token []byte) string {
	t.Helper()
	s, err := rsa.SignPKCS1v15(nil, k, crypto.SHA1, token)
	if err != nil {
		t.Fatal(err)
	}
	return string(s)
}

// expectToken waits for AUTH with a token.
func (h *host) expectToken() []byte {
	h.t.Helper()
	m := h.expect(cmdAUTH)
	if m.arg0 != authToken || len(m.payload) != 20 {
		h.t.Fatalf("AUTH(%d) with %d bytes", m.arg0, len(m.payload))
	}
	return m.payload
}

func (h *host) hello() []byte {
	h.t.Helper()
	h.send(cmdCNXN, versionNoSums, 1<<20, "host::features="+hostFeatures)
	return h.expectToken()
}

func TestKnownKeyGetsInAfterAWrongOne(t *testing.T) {
	keys := hostKeys()
	p := newPhoneT(t, Config{Auth: Auth{Required: true, Keys: []string{publicLine(keys[1])}}})
	h := dialStream(t, p)
	first := h.hello()
	h.send(cmdAUTH, authSignature, 0, sign(t, keys[0], first))
	second := h.expectToken()
	if bytes.Equal(first, second) {
		t.Error("the token was used again")
	}
	h.send(cmdAUTH, authSignature, 0, sign(t, keys[1], first)) // right key, old token
	third := h.expectToken()
	h.send(cmdAUTH, authSignature, 0, sign(t, keys[1], third))
	h.online()
	if out := h.run("exec:echo in"); out != "in\n" {
		t.Errorf("got %q", out)
	}
	noViolations(t, p)
}

func TestPromptLetsInOnceOrAlways(t *testing.T) {
	for _, always := range []bool{false, true} {
		t.Run(fmt.Sprint("always ", always), func(t *testing.T) {
			key := hostKeys()[0]
			p := newPhoneT(t, Config{Auth: Auth{Required: true}})
			h := dialStream(t, p)
			h.send(cmdAUTH, authSignature, 0, sign(t, key, h.hello()))
			h.expectToken()
			h.send(cmdOPEN, 1, 0, "shell:echo early\x00") // falls on the floor
			h.send(cmdAUTH, authPublicKey, 0, publicLine(key)+"\x00")
			h.send(cmdAUTH, authPublicKey, 0, publicLine(key)+"\x00") // asking twice is asking once
			h.send(cmdAUTH, authSignature, 0, "nonsense")             // its answer shows that all before it has been handled
			h.expectToken()
			if !p.AcceptPrompt(always) {
				t.Error("nothing to accept")
			}
			h.online()
			if p.AcceptPrompt(always) {
				t.Error("there was a second question")
			}
			expectRecorded(t, p, RuleOpen)

			token := h.hello() // the same link again: a host that was started anew
			h.send(cmdAUTH, authSignature, 0, sign(t, key, token))
			if always {
				h.online()
			} else {
				h.expectToken()
			}
		})
	}
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

func TestUserWhoTakesTime(t *testing.T) {
	key := hostKeys()[0]
	synctest.Test(t, func(t *testing.T) {
		p := newPhoneT(t, Config{Auth: Auth{Required: true, AcceptAfter: 5 * time.Second, AcceptAlways: true}})
		h := dialStream(t, p)
		h.hello()
		start := time.Now()
		h.send(cmdAUTH, authPublicKey, 0, publicLine(key)+"\x00")
		h.online()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("let in after %v", d)
		}
	})
}

// TestOneQuestionAtATime: the second host's question waits for the answer to the first, or for its unplugging.
func TestOneQuestionAtATime(t *testing.T) {
	keys := hostKeys()
	shown := make(chan string, 10)
	p := newPhoneT(t, Config{Auth: Auth{Required: true}, OnPrompt: func(f string) { shown <- f }})
	var hosts []*host
	for _, k := range []*rsa.PrivateKey{keys[0], keys[1], keys[0]} {
		h := dialStream(t, p)
		h.hello()
		h.send(cmdAUTH, authPublicKey, 0, publicLine(k)+"\x00")
		h.send(cmdAUTH, authSignature, 0, "nonsense") // its answer shows that the key has been taken
		h.expectToken()
		hosts = append(hosts, h)
	}
	first := <-shown
	hosts[0].wire.(streamWire).nc.Close()
	second := <-shown
	if first == second || len(shown) != 0 {
		t.Errorf("asked about %s, %s and %d more", first, second, len(shown))
	}
	p.DenyPrompt()
	if third := <-shown; third != first {
		t.Errorf("then about %s", third)
	}
	p.AcceptPrompt(false)
	hosts[2].online()
	if _, ok := p.Prompt(); ok {
		t.Error("a question is left")
	}
}

func TestKeysThatCannotBeStored(t *testing.T) {
	line := publicLine(hostKeys()[0])
	for name, offered := range map[string]string{
		"without NUL":   line,
		"line breaks":   line[:76] + "\n" + line[76:] + "\x00",
		"not base64":    "*" + line[1:] + "\x00",
		"too short":     line[4:] + "\x00",
		"other modulus": line[:100] + "AAAA" + line[104:] + "\x00",
	} {
		p := newPhoneT(t, Config{Auth: Auth{Required: true}})
		h := dialStream(t, p)
		h.hello()
		h.send(cmdAUTH, authPublicKey, 0, offered)
		h.send(cmdAUTH, authSignature, 0, "x")
		h.expectToken()
		if _, ok := p.Prompt(); ok {
			t.Errorf("%s: the phone asks its user", name)
		}
		expectRecorded(t, p, RulePublicKey)
	}
}

func TestForgottenKeysAreStrangers(t *testing.T) {
	key := hostKeys()[0]
	p := newPhoneT(t, Config{Auth: Auth{Required: true, Keys: []string{publicLine(key)}}})
	p.ForgetKeys()
	h := dialStream(t, p)
	h.send(cmdAUTH, authSignature, 0, sign(t, key, h.hello()))
	token := h.expectToken()
	if err := p.AuthorizeKey(publicLine(key)); err != nil {
		t.Fatal(err)
	}
	h.send(cmdAUTH, authSignature, 0, sign(t, key, token))
	h.online()
}

func TestUnauthorizedFault(t *testing.T) {
	key := hostKeys()[0]
	p := newPhoneT(t, Config{Faults: Faults{Unauthorized: true}, Auth: Auth{Keys: []string{publicLine(key)}}})
	h := dialStream(t, p)
	h.send(cmdAUTH, authSignature, 0, sign(t, key, h.hello()))
	h.send(cmdAUTH, authPublicKey, 0, publicLine(key)+"\x00")
	h.expectToken()
	waitFor(t, "the question", func() bool { return p.AcceptPrompt(true) })
	p.SetFaults(Faults{})
	h.connect(hostFeatures) // without the fault this phone lets everybody in
}

// TestOpenSSLAgrees: the signature that this phone takes is one that openssl takes for the token as a SHA-1 digest.
func TestOpenSSLAgrees(t *testing.T) {
	tool, err := exec.LookPath("openssl")
	if err != nil {
		t.Fatalf("openssl is needed for this test: run make setup: %v", err)
	}
	key, err := parsePublicKey(publicLine(hostKeys()[0]))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.rsa)
	if err != nil {
		t.Fatal(err)
	}
	token := []byte("exactly twenty bytes")
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"key":   pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"token": token,
		"good":  []byte(sign(t, hostKeys()[0], token)),
		"bad":   []byte(sign(t, hostKeys()[1], token)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"good", "bad"} {
		c := exec.CommandContext(t.Context(), tool, "pkeyutl", "-verify", "-pubin", "-inkey", "key", "-in", "token", "-sigfile", name, "-pkeyopt", "digest:sha1")
		c.Dir = dir
		out, err := c.CombinedOutput()
		signature, readErr := os.ReadFile(filepath.Join(dir, name))
		if readErr != nil {
			t.Fatal(readErr)
		}
		if want := name == "good"; (err == nil) != want || key.verify(token, signature) != want {
			t.Errorf("%s signature: openssl says %s (%v), the phone %t", name, strings.TrimSpace(string(out)), err, key.verify(token, signature))
		}
	}
}

func FuzzPublicKey(f *testing.F) {
	f.Add(publicLine(hostKeys()[0]))
	f.Add("QAAAAA== x")
	f.Fuzz(func(t *testing.T, line string) {
		k, err := parsePublicKey(line)
		if err == nil && (k.rsa.N.BitLen() != 2048 || len(k.raw) != keyStruct) {
			t.Errorf("took %q", line)
		}
	})
}
