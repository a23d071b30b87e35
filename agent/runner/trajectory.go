package runner

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"time"
)

// maxPictures bounds the pictures of a trajectory, in bytes; the steps after
// that have none.
const maxPictures = 24 << 20

// trajectory writes one attempt down. A failed write does not disturb the
// attempt: it is kept and reported at the end. A nil *trajectory writes nothing.
type trajectory struct {
	dir      string
	lines    *os.File
	steps    []Step
	pictures int // bytes written
	err      error
}

// openTrajectory makes the folder and begins steps.jsonl anew.
func openTrajectory(dir string) (*trajectory, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "steps.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	return &trajectory{dir: dir, lines: f}, nil
}

// add writes a step and its picture, whose name it puts into the step.
func (t *trajectory) add(s *Step, picture shot) {
	if t == nil {
		return
	}
	t.keep(t.picture(s, picture))
	b, err := json.Marshal(s)
	if err == nil {
		_, err = t.lines.Write(append(b, '\n'))
	}
	t.keep(err)
	t.steps = append(t.steps, *s)
}

func (t *trajectory) keep(err error) { t.err = cmp.Or(t.err, err) }

func (t *trajectory) picture(s *Step, p shot) error {
	if p.scene == nil || p.scene.Picture == nil || t.pictures >= maxPictures {
		return nil
	}
	b := p.scene.Picture.JPEG
	name := fmt.Sprintf("%03d.jpg", s.N)
	if err := os.WriteFile(filepath.Join(t.dir, name), b, 0o640); err != nil {
		return err
	}
	t.pictures += len(b)
	s.Image = name
	return nil
}

// page is what index.html shows.
type page struct {
	Goal, Task, Phone string
	Attempt, Slot     int
	Started, Ended    time.Time
	Result            Result
	Steps             []Step
}

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clock":   func(t time.Time) string { return t.Format("15:04:05") },
	"day":     func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") },
	"seconds": func(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) },
	"took":    func(p page) string { return p.Ended.Sub(p.Started).Round(100 * time.Millisecond).String() },
	"text":    func(raw json.RawMessage) string { return string(raw) },
}).Parse(pageText))

// close writes the page and makes all of it durable. It returns the first error
// of the whole trajectory.
func (t *trajectory) close(p page) error {
	if t == nil {
		return nil
	}
	p.Steps = t.steps
	t.keep(t.lines.Sync())
	t.keep(t.lines.Close())
	t.keep(t.writePage(p))
	if t.err != nil {
		return fmt.Errorf("trajectory: %w", t.err)
	}
	return nil
}

// writePage replaces index.html as a whole.
func (t *trajectory) writePage(p page) (err error) {
	f, err := os.CreateTemp(t.dir, ".index-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = cmp.Or(pageTemplate.Execute(f, p), f.Chmod(0o640), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(t.dir, "index.html"))
}
