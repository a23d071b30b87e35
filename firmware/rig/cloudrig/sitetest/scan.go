package sitetest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// window is how many bytes of each needle are looked for.
const window = 20

// Needles are what must not be found in files, by their first bytes.
type Needles map[[8]byte][]needle

type needle struct {
	what string
	text []byte
}

func (n Needles) add(what string, text []byte) {
	text = text[:min(len(text), window)]
	k := [8]byte(text)
	if !slices.ContainsFunc(n[k], func(o needle) bool { return bytes.Equal(o.text, text) }) {
		n[k] = append(n[k], needle{what, bytes.Clone(text)})
	}
}

// Forms adds a run of bytes as it may be written: raw, hexadecimal, and base64 of each alignment in both alphabets.
func (n Needles) Forms(what string, run []byte) {
	n.add(what+" as it is", run)
	n.add(what+" in hexadecimal", []byte(hex.EncodeToString(run)))
	for i := range 3 {
		n.add(fmt.Sprintf("%s in base64 (%d)", what, i), []byte(base64.RawStdEncoding.EncodeToString(run[i:])))
		n.add(fmt.Sprintf("%s in URL's base64 (%d)", what, i), []byte(base64.RawURLEncoding.EncodeToString(run[i:])))
	}
}

// Picture adds windows of all of a picture but its head, which all pictures share, and says how many.
func (n Needles) Picture(what string, jpeg []byte) (windows int) {
	const head, pieces, size = 700, 24, 2 * window
	for i := range pieces {
		at := head + i*(len(jpeg)-head-size)/pieces
		if at < head {
			break
		}
		run := jpeg[at : at+size]
		if distinct := len(slices.Compact(slices.Sorted(slices.Values(run[:window])))); distinct > 12 { // not of an even area
			n.Forms(what, run)
			windows++
		}
	}
	return windows
}

// In looks for all of them and says which are there.
func (n Needles) In(data []byte) (found []string) {
	var begins [1 << 16]bool // by two bytes: most of a database is passed over without a look into the map
	for k := range n {
		begins[int(k[0])<<8|int(k[1])] = true
	}
	for i := 0; i+window <= len(data); i++ {
		if !begins[int(data[i])<<8|int(data[i+1])] {
			continue
		}
		for _, one := range n[[8]byte(data[i:i+8])] {
			if bytes.HasPrefix(data[i:], one.text) {
				found = append(found, one.what)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Below looks into each file below a folder, and says where what was found. A file that goes meanwhile is left out.
func (n Needles) Below(t testing.TB, root string) (found map[string][]string, bytesRead int) {
	t.Helper()
	found = map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != root {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bytesRead += len(raw)
		if what := n.In(raw); len(what) > 0 {
			name, _ := filepath.Rel(root, path)
			found[name] = what
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, bytesRead
}
