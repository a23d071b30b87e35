package record

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

// page is what page.html shows. The steps come from the file again, so that no
// attempt holds all its scenes in memory.
type page struct {
	Task  Task
	Steps iter.Seq[Step]
}

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"clock":   func(t time.Time) string { return t.Format("15:04:05") },
	"day":     func(t time.Time) string { return t.Format("2006-01-02 15:04:05 MST") },
	"seconds": seconds,
	"took":    func(t Task) string { return t.End.At.Sub(t.Started).Round(100 * time.Millisecond).String() },
	"text":    func(raw json.RawMessage) string { return string(raw) },
	"list":    func(items []string) string { return strings.Join(items, ", ") },
	"shares":  shares,
	"box":     boxOf,
	"last":    func(points [][2]int) [2]int { return points[len(points)-1] },
	"lines":   func(s string) int { return strings.Count(s, "\n") },
}).Parse(pageText))

func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

// share is a part of a step's time.
type share struct {
	Name string
	MS   int64
}

// shares are the parts of a step's time that took any.
func shares(t Times) []share {
	var some []share
	for _, s := range []share{
		{"look", t.Observe},
		{"decide", t.Decide},
		{"act", t.Act},
		{"settle", t.Settle},
		{"paused", t.Paused},
		{"waited", t.Waited},
	} {
		if s.MS > 0 {
			some = append(some, s)
		}
	}
	return some
}

// box is a rectangle as SVG draws it.
type box struct{ X, Y, Width, Height int }

// boxOf returns nil for what is no rectangle.
func boxOf(bounds []int) *box {
	if len(bounds) != 4 || bounds[2] <= bounds[0] || bounds[3] <= bounds[1] {
		return nil
	}
	return &box{bounds[0], bounds[1], bounds[2] - bounds[0], bounds[3] - bounds[1]}
}

// Finish makes a trajectory that was cut off one that can be looked at: it writes
// the page, with the steps as far as they can be read, and takes away files that
// were half written.
func Finish(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, partPrefix+"*"))
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	task, taskErr := ReadTask(dir)
	if taskErr != nil {
		return errors.Join(err, taskErr)
	}
	return errors.Join(err, writePage(dir, task), syncPath(dir))
}

// Conclude gives a trajectory its end and its page where its Writer found no room
// for them; what has both stays as it is. It must not be called while a Writer is
// at work there.
func Conclude(dir string, end End) error {
	task, err := ReadTask(dir)
	if err != nil {
		return err
	}
	if task.End == nil {
		task.End = &end
		if err := (&Writer{dir: dir, task: task}).writeTask(); err != nil {
			return err
		}
	} else if HasPage(dir) {
		return nil
	}
	return Finish(dir)
}

// HasPage tells whether a trajectory has its page, which is written last.
func HasPage(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, pageFile))
	return err == nil
}

// writePage replaces index.html as a whole.
func writePage(dir string, task Task) error {
	var broken error
	p := page{Task: task, Steps: func(yield func(Step) bool) {
		for s, err := range Steps(dir, false) {
			if err != nil {
				broken = err
				return
			}
			if !yield(s) {
				return
			}
		}
	}}
	err := replace(filepath.Join(dir, pageFile), func(f *os.File) error { return pageTemplate.Execute(f, p) })
	if err != nil {
		return err
	}
	return broken
}
