package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"phonerack/agent/phone/appium"
)

// fixture is a package as a registry has it.
func fixture(t *testing.T, spoil func(files map[string]string)) (appium.Package, []byte) {
	t.Helper()
	app := "PK\x03\x04 an app"
	files := map[string]string{
		"package/package.json": "{}", "package/LICENSE": "Apache-2.0", "package/NOTICE.txt": "notice", "package/apks/a.apk": app,
		"package/../../evil": "x", "package/apks/other.apk": "x",
	}
	if spoil != nil {
		spoil(files)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tarball, sum := sha512.Sum512(b.Bytes()), sha256.Sum256([]byte(app))
	return appium.Package{
		Name: "some.apps", Version: "1.2.3", Integrity: "sha512-" + base64.StdEncoding.EncodeToString(tarball[:]),
		Papers: []string{"LICENSE", "NOTICE.txt"},
		Apps:   []appium.App{{ID: "com.example", File: "a.apk", Size: int64(len(app)), SHA256: hex.EncodeToString(sum[:])}},
	}, b.Bytes()
}

// registry serves one tarball and counts.
func registry(t *testing.T, tarball []byte) (string, *atomic.Int32) {
	t.Helper()
	var served atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		if r.URL.Path != "/npm/some.apps/-/some.apps-1.2.3.tgz" {
			http.NotFound(w, r)
			return
		}
		w.Write(tarball)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/npm/", &served
}

func TestFetchOnceAndAgainIfAltered(t *testing.T) {
	p, tarball := fixture(t, nil)
	address, served := registry(t, tarball)
	folder := filepath.Join(t.TempDir(), "helpers")
	app := filepath.Join(folder, "some.apps-1.2.3", "a.apk")
	for n, want := range []struct {
		before  func()
		fetched bool
	}{
		{nil, true},
		{nil, false},
		{func() { write(t, app, "something else") }, true},
		{func() { remove(t, filepath.Join(filepath.Dir(app), "LICENSE")) }, true},
		{nil, false},
	} {
		if want.before != nil {
			want.before()
		}
		fetched, err := fetch(t.Context(), http.DefaultClient, address, folder, p)
		if err != nil || fetched != want.fetched {
			t.Fatalf("%d: fetched %t, %v", n, fetched, err)
		}
		if err := complete(folder, p); err != nil {
			t.Errorf("%d: %v", n, err)
		}
	}
	if served.Load() != 3 {
		t.Errorf("%d downloads", served.Load())
	}
	var left []string
	err := filepath.WalkDir(filepath.Dir(folder), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			left = append(left, d.Name())
		}
		return err
	})
	if err != nil || strings.Join(left, " ") != "LICENSE NOTICE.txt a.apk" {
		t.Errorf("files %q, %v", left, err)
	}
}

// TestFetchTakesPinnedPackagesOnly: after a failure nothing is there that was not before.
func TestFetchTakesPinnedPackagesOnly(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(files map[string]string)
		change func(p *appium.Package, tarball []byte) []byte
		says   string
	}{
		"another tarball": {nil, func(p *appium.Package, b []byte) []byte { return append(b, 0) }, "not the pinned package"},
		"cut short":       {nil, func(p *appium.Package, b []byte) []byte { return b[:len(b)/2] }, "not the pinned package"},
		"not there":       {nil, func(p *appium.Package, b []byte) []byte { p.Version = "9"; return b }, "404"},
		"no app in it":    {func(f map[string]string) { delete(f, "package/apks/a.apk") }, nil, "missing"},
		"no licence":      {func(f map[string]string) { delete(f, "package/LICENSE") }, nil, "missing"},
		"another app":     {func(f map[string]string) { f["package/apks/a.apk"] = "PK\x03\x04 my app" }, nil, "not the pinned file"},
		"a larger app":    {func(f map[string]string) { f["package/apks/a.apk"] = strings.Repeat("x", 100) }, nil, "100 bytes"},
		"no archive":      {nil, func(p *appium.Package, b []byte) []byte { p.Integrity = sri(noGzip); return []byte(noGzip) }, "gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			p, tarball := fixture(t, c.spoil)
			if c.change != nil {
				tarball = c.change(&p, tarball)
			}
			address, _ := registry(t, tarball)
			folder := t.TempDir()
			fetched, err := fetch(t.Context(), http.DefaultClient, address, folder, p)
			if err == nil || fetched || !strings.Contains(err.Error(), c.says) {
				t.Errorf("fetched %t, %v", fetched, err)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
				t.Errorf("left %v, %v", entries, err)
			}
		})
	}
}

func TestSettingsOfNpm(t *testing.T) {
	for name, c := range map[string]struct {
		file     string
		env      map[string]string
		registry string // "" for an error
		proxy    string
	}{
		"nothing set":       {"", nil, "https://registry.npmjs.org/", ""},
		"in the file":       {"; a comment\nregistry = https://npm.example/all\nhttps-proxy=http://proxy:3128\n", nil, "https://npm.example/all/", "http://proxy:3128"},
		"environment first": {"registry=https://a/\n", map[string]string{"npm_config_registry": "http://b"}, "http://b/", ""},
		"shouted":           {"", map[string]string{"NPM_CONFIG_PROXY": "http://p"}, "https://registry.npmjs.org/", "http://p"},
		"null":              {"proxy=null\n", nil, "https://registry.npmjs.org/", ""},
		"no address":        {"registry=ftp://x\n", nil, "", ""},
		"no proxy address":  {"proxy=x\n", nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if c.file != "" {
				write(t, filepath.Join(home, ".npmrc"), c.file)
			}
			n, err := settings(home, func(k string) string { return c.env[k] })
			proxy := ""
			if n.proxy != nil {
				proxy = n.proxy.String()
			}
			if n.registry != c.registry || err == nil && proxy != c.proxy || (err != nil) != (c.registry == "") {
				t.Errorf("%+v, %v", n, err)
			}
		})
	}
}

const noGzip = "this is no archive at all"

func sri(s string) string {
	sum := sha512.Sum512([]byte(s))
	return "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
