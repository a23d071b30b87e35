package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"phonerack/agent/phone/appium"
)

// Bounds of a package.
const (
	maxTarball = 64 << 20 // bytes
	maxPaper   = 1 << 20  // bytes of a licence or notice
)

// fetch makes sure that folder has the files of p, and reports whether it
// downloaded them. They appear all at once.
func fetch(ctx context.Context, client *http.Client, registry, folder string, p appium.Package) (bool, error) {
	if complete(folder, p) == nil {
		return false, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return false, err
	}
	tarball, err := os.CreateTemp(folder, ".tarball-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(tarball.Name())
	defer tarball.Close()
	if err := download(ctx, client, registry+p.Name+"/-/"+p.Name+"-"+p.Version+".tgz", p.Integrity, tarball); err != nil {
		return false, err
	}
	partial, err := os.MkdirTemp(folder, ".partial-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(partial)
	if err := unpack(tarball, filepath.Join(partial, p.Folder()), p); err != nil {
		return false, fmt.Errorf("%s %s: %w", p.Name, p.Version, err)
	}
	if err := complete(partial, p); err != nil {
		return false, err
	}
	final := filepath.Join(folder, p.Folder())
	if err := os.RemoveAll(final); err != nil {
		return false, err
	}
	return true, os.Rename(filepath.Join(partial, p.Folder()), final)
}

// complete returns nil if each file of p is there and each app is the pinned one.
func complete(folder string, p appium.Package) error {
	for _, paper := range p.Papers {
		if _, err := os.Stat(filepath.Join(folder, p.Folder(), paper)); err != nil {
			return err
		}
	}
	for _, a := range p.Apps {
		if _, err := p.Read(os.DirFS(folder), a); err != nil {
			return fmt.Errorf("%s: %w", a.File, errors.Unwrap(err))
		}
	}
	return nil
}

// download writes what is at address to w, if it is what integrity says.
func download(ctx context.Context, client *http.Client, address, integrity string, w io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%w; check the network and the proxy settings, then run make helpers again", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	sum := sha512.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(resp.Body, maxTarball+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", address, err)
	case n > maxTarball:
		return fmt.Errorf("%s is larger than %d bytes", address, maxTarball)
	case "sha512-"+base64.StdEncoding.EncodeToString(sum.Sum(nil)) != integrity:
		return fmt.Errorf("%s is not the pinned package: its integrity is another; nothing of it was used", address)
	}
	return nil
}

// unpack writes the wanted files of an npm tarball into folder.
func unpack(tarball io.ReadSeeker, folder string, p appium.Package) error {
	wanted := map[string]int64{} // path in the tarball, bound in bytes
	for _, paper := range p.Papers {
		wanted["package/"+paper] = maxPaper
	}
	for _, a := range p.Apps {
		wanted["package/apks/"+a.File] = a.Size
	}
	if _, err := tarball.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := gzip.NewReader(tarball)
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	for t := tar.NewReader(z); len(wanted) > 0; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%d files are missing in it", len(wanted))
		}
		if err != nil {
			return err
		}
		bound, ok := wanted[h.Name]
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		delete(wanted, h.Name)
		if h.Size > bound {
			return fmt.Errorf("%s has %d bytes, at most %d are expected", h.Name, h.Size, bound)
		}
		b, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(h.Name)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
