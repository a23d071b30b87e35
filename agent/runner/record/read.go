package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Bounds of what is read, in bytes and steps.
const (
	maxTaskFile = 1 << 20
	maxLine     = 1 << 20
	maxSteps    = 5000
)

// ErrDamaged is wrapped by the errors about files that cannot be understood.
var ErrDamaged = errors.New("the record is damaged")

// ReadTask reads task.json of a trajectory.
func ReadTask(dir string) (Task, error) {
	var t Task
	f, err := open(dir, taskFile)
	if err != nil {
		return t, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTaskFile+1))
	switch {
	case err != nil:
		return t, fmt.Errorf("read the record: %w", err)
	case len(b) > maxTaskFile:
		return t, damaged(taskFile, "it is larger than %d bytes", maxTaskFile)
	}
	if err := strict(b, &t); err != nil {
		return t, damaged(taskFile, "%w", err)
	}
	switch {
	case t.Version != Version:
		return t, damaged(taskFile, "it has the version %d, and only %d is known", t.Version, Version)
	case t.Goal == "":
		return t, damaged(taskFile, "it has no goal")
	}
	return t, nil
}

// Steps reads the steps of a trajectory one after the other. After an error
// nothing follows. The last line of an attempt that was cut off may be missing
// its end: it is an error too, unless whole is false.
func Steps(dir string, whole bool) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		f, err := open(dir, stepsFile)
		if err != nil {
			yield(Step{}, err)
			return
		}
		defer f.Close()
		lines := bufio.NewReaderSize(f, 64<<10)
		for n := 1; ; n++ {
			line, err := readLine(lines)
			if len(line) == 0 && errors.Is(err, io.EOF) || errors.Is(err, io.EOF) && !whole {
				return
			}
			s, err := parseStep(line, n, err)
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// open opens a file of a trajectory. To open a pipe would wait for its other end.
func open(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, damaged(name, "it is no plain file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return f, nil
}

// readLine reads a line without its end, and fails with io.EOF if it has none.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("it is longer than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), err
		}
	}
}

func parseStep(line []byte, n int, err error) (Step, error) {
	var s Step
	where := fmt.Sprintf("line %d of %s", n, stepsFile)
	switch {
	case errors.Is(err, io.EOF):
		return s, damaged(where, "it has no end")
	case err != nil:
		return s, damaged(where, "%w", err)
	case n > maxSteps:
		return s, damaged(where, "there are more than %d steps", maxSteps)
	}
	if err := strict(line, &s); err != nil {
		return s, damaged(where, "%w", err)
	}
	switch {
	case s.N != n:
		return s, damaged(where, "it is step %d", s.N)
	case !slices.Contains([]string{Turn, Popup, Calm, Wake, Failed}, s.Kind):
		return s, damaged(where, "its kind %.40q is not known", s.Kind)
	case s.Kind != Failed && (s.Tool == "" || len(s.Arguments) == 0):
		return s, damaged(where, "it has no decision")
	case s.Outcome == "":
		return s, damaged(where, "it has no outcome")
	}
	return s, nil
}

func damaged(where, format string, args ...any) error {
	return fmt.Errorf("%w: %s cannot be used because "+format, append([]any{ErrDamaged, where}, args...)...)
}

// strict reads one JSON value without unknown names.
func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}
	return nil
}
