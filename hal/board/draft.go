package board

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Draft is a board file to which slots are added one by one. Each is on the disk, and the file whole,
// when Add returns; what people have written in the file stays as it is, comments too.
type Draft struct {
	path  string
	board *Board
	texts [][]byte // the file before each Add of this draft, then as it is
}

// OpenDraft reads the board file at path, which may lack slots. When there is no such file the draft
// begins with name and model, which may be "", and the file comes into being with the first slot.
func OpenDraft(path, name, model string) (*Draft, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		text = fmt.Appendf(nil, "name = %s\n", strconv.Quote(name))
		if model != "" {
			text = fmt.Appendf(text, "model = %s\n", strconv.Quote(model))
		}
	} else if err != nil {
		return nil, err
	}
	b, _, err := parseParts(path, text)
	if err != nil {
		return nil, err
	}
	return &Draft{path: path, board: b, texts: [][]byte{text}}, nil
}

// Board gives what is in the file now; it may have no slots.
func (d *Draft) Board() *Board { return d.board }

// Add adds a slot with its number, path, label, row and column. A slot that does not fit the board is
// refused with Faults whose lines count in the file as it would be; the file is left alone then.
func (d *Draft) Add(s Slot) error {
	text := slices.Concat(d.texts[len(d.texts)-1], []byte(slotText(s)))
	if err := d.write(text); err != nil {
		return err
	}
	d.texts = append(d.texts, text)
	return nil
}

// Undo takes the last slot that Add has added out of the file again; false when there is none.
func (d *Draft) Undo() (bool, error) {
	last := len(d.texts) - 1
	if last == 0 {
		return false, nil
	}
	if err := d.write(d.texts[last-1]); err != nil {
		return false, err
	}
	d.texts = d.texts[:last]
	return true, nil
}

// slotText is a slot as TOML. A path holds digits, dashes and dots only: it is checked before.
func slotText(s Slot) string {
	var t strings.Builder
	fmt.Fprintf(&t, "\n[[slot]]\nnumber = %d\npath = %q\n", s.Number, s.Path)
	if s.Label != "" {
		fmt.Fprintf(&t, "label = %q\n", s.Label)
	}
	if s.Row > 0 && s.Column > 0 {
		fmt.Fprintf(&t, "row = %d\ncolumn = %d\n", s.Row, s.Column)
	}
	return t.String()
}

// write checks a text and puts it in the file's place.
func (d *Draft) write(text []byte) error {
	b, _, err := parseParts(d.path, text)
	if err != nil {
		return err
	}
	if err := replace(d.path, text); err != nil {
		return fmt.Errorf("write board file: %w", err)
	}
	d.board = b
	return nil
}

// replace puts text in a file's place so that a cut of power leaves the old one or the new one, whole.
func replace(path string, text []byte) error {
	dir := filepath.Dir(path)
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(dir, ".board-*.toml")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && runtime.GOOS != "windows" { // which cannot: there the rename alone has to do
		return err
	}
	return nil
}
