package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Files of a trajectory.
const (
	taskFile  = "task.json"
	stepsFile = "steps.jsonl"
	pageFile  = "index.html"

	partPrefix = ".new-" // of what is not whole yet
)

// Bounds of what one attempt writes, in bytes. Steps themselves are few and
// small: a task's budget of steps bounds them.
const (
	maxPictures = 24 << 20
	maxScenes   = 16 << 20
	maxScene    = 384 << 10 // well below maxLine, whatever has to be escaped
)

// What LeftOut says.
const (
	noPicture = "picture"
	noScene   = "scene"
	noBoth    = "picture and scene"
)

// Writer writes one attempt down. A failed write does not disturb the attempt:
// it is kept, and Close reports it. A nil Writer writes nothing.
type Writer struct {
	dir      string
	task     Task
	mask     Mask
	lines    *os.File
	sync     func(path string) error // of a file or a folder
	images   []string                // files written and not synced yet
	written  int64                   // bytes of whole lines
	pictures int                     // bytes written
	scenes   int                     // the same
	err      error
}

// Create makes the folder and begins the trajectory anew. What an earlier
// attempt has left in the folder goes. dir "" makes a nil Writer.
func Create(dir string, task Task, mask Mask) (*Writer, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	if err := removeOld(dir); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	task.Version = Version
	w := &Writer{dir: dir, task: task, mask: mask, sync: syncPath}
	if err := w.writeTask(); err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, stepsFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return nil, fmt.Errorf("trajectory: %w", err)
	}
	w.lines = f
	return w, nil
}

// removeOld takes away what a Writer wrote there before.
func removeOld(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, "[0-9][0-9][0-9]*.jpg"))
	if err != nil {
		return err
	}
	for _, name := range append(old, filepath.Join(dir, pageFile)) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Add writes a step whose texts are masked already, with its picture as a JPEG.
// Where there is no room left it says so in the step. s.Scene is for the file
// only: it is empty afterwards.
func (w *Writer) Add(s *Step, picture []byte) {
	if w == nil {
		s.Scene = ""
		return
	}
	s.Sum = s.SumOf()
	pictureLeft := len(picture) > 0 && w.pictures+len(picture) > maxPictures
	if len(picture) > 0 && !pictureLeft {
		w.keep(w.picture(s, picture))
	}
	sceneLeft := len(s.Scene) > maxScene || w.scenes+len(s.Scene) > maxScenes
	if sceneLeft {
		s.Scene = ""
	}
	w.scenes += len(s.Scene)
	switch {
	case pictureLeft && sceneLeft:
		s.LeftOut = noBoth
	case pictureLeft:
		s.LeftOut = noPicture
	case sceneLeft:
		s.LeftOut = noScene
	}
	w.keep(w.line(s))
	s.Scene = ""
}

// line writes one step. Texts stay readable: nothing is escaped for HTML. Of a
// line for which there is no room nothing stays, or the next one would be lost
// with it.
func (w *Writer) line(s *Step) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	n, err := w.lines.Write(b.Bytes())
	if err == nil {
		w.written += int64(n)
		return nil
	}
	if n > 0 {
		_, seekErr := w.lines.Seek(w.written, io.SeekStart)
		err = errors.Join(err, w.lines.Truncate(w.written), seekErr)
	}
	return err
}

func (w *Writer) keep(err error) { w.err = cmp.Or(w.err, err) }

func (w *Writer) picture(s *Step, picture []byte) error {
	name := fmt.Sprintf("%03d.jpg", s.N)
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, picture, 0o640); err != nil {
		os.Remove(path) // a part of a picture is none
		return err
	}
	w.pictures += len(picture)
	w.images = append(w.images, path)
	s.Image = name
	return nil
}

// Close writes the end and the page, and makes all of it durable: the pictures
// too, which nobody waited for while the attempt ran. It returns the first error
// of the whole trajectory.
func (w *Writer) Close(end End) error {
	if w == nil {
		return nil
	}
	end.Message, end.Refusal = w.mask.Text(end.Message), w.mask.Refusal(end.Refusal)
	w.task.End = &end
	w.keep(w.lines.Sync())
	w.keep(w.lines.Close())
	for _, path := range w.images {
		w.keep(w.sync(path))
	}
	w.keep(w.writeTask())
	w.keep(writePage(w.dir, w.task))
	w.keep(w.sync(w.dir))
	w.keep(w.sync(filepath.Dir(w.dir))) // which Create may have put it into
	if w.err != nil {
		return fmt.Errorf("trajectory: %w", w.err)
	}
	return nil
}

func (w *Writer) writeTask() error {
	b, err := json.MarshalIndent(w.task, "", "\t")
	if err != nil {
		return err
	}
	return replace(filepath.Join(w.dir, taskFile), func(f *os.File) error {
		_, err := f.Write(append(b, '\n'))
		return err
	})
}

// syncPath makes the content of a file durable, or of a folder: the names in it.
// Windows, where no rack runs, cannot sync a folder.
func syncPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	flag := os.O_RDWR
	if info.IsDir() {
		if runtime.GOOS == "windows" {
			return nil
		}
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(path, flag, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// replace writes a file as a whole: the old one stays until the new one is there.
// The new name is durable once the folder is synced.
func replace(name string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), partPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = cmp.Or(write(f), f.Chmod(0o640), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
