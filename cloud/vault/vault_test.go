package vault

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const cleartext = "sk-Very-Secret-0123456789"

var binding = Binding{"profile", []string{"acme", "p1"}, 3}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh makes a key file with so many keys.
func fresh(t testing.TB, keys int) (*Vault, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kek")
	for n := range keys {
		do := Add
		if n == 0 {
			do = Generate
		}
		_, err := do(path)
		ok(t, err)
	}
	v, err := Open(path)
	ok(t, err)
	return v, path
}

func sealed(t testing.TB, v *Vault, b Binding) []byte {
	t.Helper()
	out, err := v.Seal(b, NewSecret([]byte(cleartext)))
	ok(t, err)
	return out
}

func opens(t testing.TB, v *Vault, b Binding, value []byte) {
	t.Helper()
	s, err := v.Open(b, value)
	ok(t, err)
	if string(s.Reveal()) != cleartext {
		t.Fatal("another secret came out")
	}
}

// fails wants ErrUndecryptable with these words, and nothing of the secret.
func fails(t testing.TB, v *Vault, b Binding, value []byte, words string) {
	t.Helper()
	s, err := v.Open(b, value)
	if !errors.Is(err, ErrUndecryptable) || !s.Empty() {
		t.Fatalf("error is %v", err)
	}
	if !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), cleartext) {
		t.Fatalf("error is %q, want %q in it", err, words)
	}
}

func TestASealedValueOpensForItsBindingOnly(t *testing.T) {
	v, _ := fresh(t, 1)
	value := sealed(t, v, binding)
	opens(t, v, binding, value)
	for name, other := range map[string]Binding{
		"purpose":        {"identity", binding.Owner, 3},
		"tenant":         {"profile", []string{"other", "p1"}, 3},
		"row":            {"profile", []string{"acme", "p2"}, 3},
		"version":        {"profile", binding.Owner, 4},
		"shifted fields": {"profile", []string{"acmep", "1"}, 3},
		"joined fields":  {"profile", []string{"acme p1"}, 3},
		"moved fields":   {"profileacme", []string{"p1"}, 3},
		"none":           {},
	} {
		t.Run(name, func(t *testing.T) { fails(t, v, other, value, "not this "+other.Purpose) })
	}
	if bytes.Equal(value, sealed(t, v, binding)) {
		t.Error("the same secret looks the same twice")
	}
	if bytes.Contains(value, []byte(cleartext)) {
		t.Error("the secret is readable")
	}
}

func TestNoByteOfASealedValueCanBeChanged(t *testing.T) {
	v, _ := fresh(t, 1)
	value := sealed(t, v, binding)
	for i := range value {
		bad := bytes.Clone(value)
		bad[i] ^= 1
		fails(t, v, binding, bad, "")
		fails(t, v, binding, value[:i], "")
	}
	fails(t, v, binding, append(bytes.Clone(value), 0), "altered")
	// Halves of two values of one binding do not make a third.
	other := sealed(t, v, binding)
	cut := len(magic) + 1 + len(v.writing) + wrapped
	fails(t, v, binding, append(bytes.Clone(value[:cut]), other[cut:]...), "altered")
}

func TestAMissingOrWrongKeyConcernsItsValuesOnly(t *testing.T) {
	v, path := fresh(t, 1)
	old := sealed(t, v, binding)
	first := v.Writing()
	second, err := Add(path)
	ok(t, err)
	v, err = Open(path)
	ok(t, err)
	if v.Writing() != second {
		t.Fatalf("writing key is %s, the new one is %s", v.Writing(), second)
	}
	value := sealed(t, v, binding)
	if KeyID(old) != first || KeyID(value) != second || KeyID([]byte("plain")) != "" {
		t.Errorf("key ids are %q and %q", KeyID(old), KeyID(value))
	}
	opens(t, v, binding, old)
	opens(t, v, binding, value)

	content, err := os.ReadFile(path)
	ok(t, err)
	lines := strings.SplitAfter(string(content), "\n") // comment, first, second
	ok(t, os.WriteFile(path, []byte(lines[2]), 0o600))
	v, err = Open(path)
	ok(t, err)
	fails(t, v, binding, old, "is not in the key file")
	opens(t, v, binding, value)

	// The first id with other bytes.
	_, strange := fresh(t, 1)
	content, err = os.ReadFile(strange)
	ok(t, err)
	fields := strings.Fields(strings.SplitAfter(string(content), "\n")[1])
	ok(t, os.WriteFile(path, []byte(lineWord+" "+first+" "+fields[2]+"\n"+lines[2]), 0o600))
	v, err = Open(path)
	ok(t, err)
	fails(t, v, binding, old, "is another one")
	opens(t, v, binding, value)
	if _, err = v.Reseal(binding, old); !errors.Is(err, ErrUndecryptable) {
		t.Errorf("resealed with the wrong key: %v", err)
	}
}

func TestResealMovesAValueToTheWritingKey(t *testing.T) {
	v, path := fresh(t, 1)
	old := sealed(t, v, binding)
	_, err := Add(path)
	ok(t, err)
	v, err = Open(path)
	ok(t, err)
	anew, err := v.Reseal(binding, old)
	ok(t, err)
	if KeyID(anew) != v.Writing() || KeyID(old) == KeyID(anew) {
		t.Errorf("sealed under %s, was %s", KeyID(anew), KeyID(old))
	}
	opens(t, v, binding, anew)
	fails(t, v, Binding{}, anew, "")
}

func TestSizes(t *testing.T) {
	v, _ := fresh(t, 1)
	for _, n := range []int{0, 1, MaxSecret} {
		value, err := v.Seal(binding, NewSecret(make([]byte, n)))
		ok(t, err)
		s, err := v.Open(binding, value)
		ok(t, err)
		if len(s.Reveal()) != n {
			t.Errorf("%d bytes came back as %d", n, len(s.Reveal()))
		}
	}
	if _, err := v.Seal(binding, NewSecret(make([]byte, MaxSecret+1))); err == nil {
		t.Error("too much was sealed")
	}
}

func TestKeyFilesThatAreRefused(t *testing.T) {
	_, good := fresh(t, 1)
	content, err := os.ReadFile(good)
	ok(t, err)
	line := strings.SplitAfter(string(content), "\n")[1]
	write := func(t *testing.T, content string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "kek")
		ok(t, os.WriteFile(path, []byte(content), 0o600))
		ok(t, os.Chmod(path, mode))
		return path
	}
	for _, c := range []struct {
		name, content, words string
		mode                 os.FileMode
	}{
		{"readable by the group", line, "mode 0640", 0o640},
		{"writable by others", line, "mode 0602", 0o602},
		{"executable by others", line, "mode 0601", 0o601},
		{"empty", "", "no key", 0o600},
		{"comments only", "# nothing\n\n", "no key", 0o600},
		{"another word", "kek" + line, "line 1", 0o600},
		{"too few fields", lineWord + " a\n", "line 1", 0o600},
		{"short key", lineWord + " a c2hvcnQ=\n", "32 bytes", 0o600},
		{"not base64", lineWord + " a " + strings.Repeat("!", 44) + "\n", "base64", 0o600},
		{"bad id", strings.Replace(line, lineWord+" ", lineWord+" A", 1), "id", 0o600},
		{"twice the same id", line + line, "line 2", 0o600},
		{"too large", line + strings.Repeat("#\n", maxFile), "more than", 0o600},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(write(t, c.content, c.mode))
			if !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), c.words) {
				t.Fatalf("error is %v, want %q in it", err, c.words)
			}
			if secret := strings.Fields(line)[2]; strings.Contains(err.Error(), secret) {
				t.Error("the error quotes a key")
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		if _, err := Open(t.TempDir()); !errors.Is(err, ErrKeyFile) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("missing", func(t *testing.T) {
		if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("of another user", func(t *testing.T) {
		path := write(t, line, 0o600)
		giveAway(t, path)
		if _, err := Open(path); !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("link of another user", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		ok(t, os.Symlink(good, link))
		_, err := Open(link)
		ok(t, err) // one's own leads on
		giveAway(t, link)
		second := filepath.Join(t.TempDir(), "second")
		ok(t, os.Symlink(link, second))
		for _, path := range []string{link, second} {
			if _, err := Open(path); !errors.Is(err, ErrKeyFile) || !strings.Contains(err.Error(), "link of another user") {
				t.Errorf("error is %v", err)
			}
			if _, err := Add(path); !errors.Is(err, ErrKeyFile) {
				t.Errorf("added: %v", err)
			}
		}
	})
	t.Run("links in a circle", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		ok(t, os.Symlink(link, link))
		if _, err := Open(link); err == nil {
			t.Error("opened")
		}
	})
	t.Run("a bad file is left alone, and a good one by who makes one", func(t *testing.T) {
		for _, c := range []struct {
			path      string
			adds, new error
		}{
			{write(t, "nonsense", 0o600), ErrKeyFile, fs.ErrExist},
			{write(t, line, 0o644), ErrKeyFile, ErrKeyFile},
			{good, nil, fs.ErrExist},
		} {
			path := c.path
			before, err := os.ReadFile(path)
			ok(t, err)
			if _, err = Generate(path); !errors.Is(err, c.new) {
				t.Errorf("generated: error is %v", err)
			}
			if c.adds != nil {
				if _, err = Add(path); !errors.Is(err, c.adds) {
					t.Errorf("added: error is %v", err)
				}
			}
			after, err := os.ReadFile(path)
			ok(t, err)
			if !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		}
	})
}

// giveAway makes a file, or a link, somebody else's: by its owner where this user may, else by who looks at it.
func giveAway(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		ok(t, os.Lchown(path, 65534, 65534))
		return
	}
	whoami = func() int { return os.Geteuid() + 1 }
	t.Cleanup(func() { whoami = os.Geteuid })
}

// TestAKeyIsAddedToAFileThatIsThereOnly: nothing is made at a path that was mistyped.
func TestAKeyIsAddedToAFileThatIsThereOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kek")
	if _, err := Add(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("added: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is there: %v", err)
	}
}

func TestKeysThatAreAddedAtOnceAreNotLost(t *testing.T) {
	_, path := fresh(t, 1)
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			var err error
			if ids[i], err = Add(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	v, err := Open(path)
	ok(t, err)
	for _, id := range ids {
		if _, there := v.keys[id]; !there {
			t.Errorf("key %s is lost", id)
		}
	}
	info, err := os.Stat(path)
	ok(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %o", info.Mode().Perm())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	ok(t, err)
	if len(entries) != 1 {
		t.Errorf("%d files are left", len(entries))
	}
}

func TestCredential(t *testing.T) {
	_, path := fresh(t, 1)
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if _, err := OpenCredential("kek"); !errors.Is(err, ErrKeyFile) {
		t.Errorf("error is %v", err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", filepath.Dir(path))
	ok(t, os.Chmod(path, 0o440)) // as systemd shows an access list
	v, err := OpenCredential("kek")
	ok(t, err)
	opens(t, v, binding, sealed(t, v, binding))
	for _, name := range []string{"", ".", "..", "../kek", "a/b"} {
		if _, err := OpenCredential(name); !errors.Is(err, ErrKeyFile) {
			t.Errorf("%q: %v", name, err)
		}
	}
	ok(t, os.Chmod(path, 0o444))
	if _, err = OpenCredential("kek"); !errors.Is(err, ErrKeyFile) {
		t.Errorf("error is %v", err)
	}
}

func TestASecretNeverShows(t *testing.T) {
	s := NewSecret([]byte(cleartext))
	type holder struct {
		Name   string
		Secret Secret
		Ptr    *Secret
		hidden Secret
	}
	h := holder{"n", s, &s, s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%T"} {
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
		fmt.Fprintf(&out, verb+"\n", []Secret{s})
		fmt.Fprintf(&out, verb+"\n", map[string]Secret{"k": s})
	}
	fmt.Fprintf(&out, "%v %+v", h, &h)
	fmt.Fprintln(&out, s, errors.Join(fmt.Errorf("failed with %v", s)))
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("x", "secret", s, "ptr", &s, "in", h, "list", []Secret{s})
	}
	for _, v := range []any{s, &s, h, map[string]any{"k": s}} {
		b, err := json.Marshal(v)
		ok(t, err)
		out.Write(b)
	}
	type document struct{ S Secret }
	b, err := xml.Marshal(document{s})
	ok(t, err)
	out.Write(b)
	shown := out.String()
	for _, form := range []string{
		cleartext, "Very-Secret", fmt.Sprintf("%x", cleartext), fmt.Sprintf("%X", cleartext), fmt.Sprint([]byte(cleartext)),
		fmt.Sprintf("%x", cleartext[3:10]), "115 107 45", "0x73, 0x6b",
	} {
		if strings.Contains(shown, form) {
			t.Errorf("shows as %q", form)
		}
	}
	if !strings.Contains(shown, redacted) {
		t.Error("nothing was shown at all")
	}
}

func FuzzOpen(f *testing.F) {
	v, _ := fresh(f, 1)
	value := sealed(f, v, binding)
	f.Add(value)
	f.Add([]byte(magic))
	f.Add(append([]byte(magic), 255))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := v.Open(binding, b)
		if err == nil && !bytes.Equal(b, value) || err != nil && (!errors.Is(err, ErrUndecryptable) || !s.Empty()) {
			t.Errorf("opened %x: %v", b, err)
		}
		KeyID(b)
	})
}

func FuzzParse(f *testing.F) {
	_, path := fresh(f, 2)
	content, err := os.ReadFile(path)
	ok(f, err)
	f.Add(content)
	f.Add([]byte(lineWord + " a\r\n# x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parse(b)
		if err == nil && len(keys) == 0 {
			t.Error("no key and no error")
		}
		for _, k := range keys {
			if !idOK(k.id) || len(k.secret) != keySize {
				t.Errorf("key %q has %d bytes", k.id, len(k.secret))
			}
		}
	})
}
