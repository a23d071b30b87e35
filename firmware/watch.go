package firmware

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"phonerack/firmware/action"
)

const maxStepLine = 1 << 20 // bytes

// WatchTask implements action.Rack.
func (r *Rack) WatchTask(ctx context.Context, id string, step func(action.TaskEvent) error) error {
	if t := r.running(id); t != nil {
		if err := t.follow(ctx, step); err != nil {
			return err
		}
		status := t.snapshot() // its message as it is: whoever watches may know the task's parameters
		return step(action.TaskEvent{Status: &status})
	}
	if err := r.replay(id, step); err != nil {
		return err
	}
	status, err := r.Task(id)
	if err != nil {
		return err
	}
	return step(action.TaskEvent{Status: &status})
}

// follow hands out each step, the first ones at once, and the status when it waits, pauses or goes on, until the task has
// ended.
func (t *task) follow(ctx context.Context, step func(action.TaskEvent) error) error {
	told := action.Running
	for seen := 0; ; {
		ended := false
		select {
		case <-t.ended: // looked at before the steps, so that none is missed
			ended = true
		default:
		}
		steps, more := t.since(seen)
		for _, s := range steps {
			if err := step(action.TaskEvent{Step: s}); err != nil {
				return err
			}
			seen++
		}
		if ended {
			return nil
		}
		if status := t.snapshot(); status.State != told {
			told = status.State
			if err := step(action.TaskEvent{Status: &status}); err != nil {
				return err
			}
		}
		select {
		case <-more:
		case <-t.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// replay hands out the steps of a task that has ended. A trajectory that is gone has none.
func (r *Rack) replay(id string, step func(action.TaskEvent) error) error {
	if _, err := r.taskLog.get(id); err != nil {
		return err
	}
	f, err := os.Open(path.Join(r.taskFolder(id), "steps.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the trajectory: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxStepLine)
	for lines.Scan() {
		if !json.Valid(lines.Bytes()) {
			continue // the last line of a task that was cut
		}
		if err := step(action.TaskEvent{Step: json.RawMessage(lines.Text())}); err != nil {
			return err
		}
	}
	return lines.Err()
}

// TaskFiles implements action.Rack. Only plain files go into the archive.
func (r *Rack) TaskFiles(ctx context.Context, id string, w io.Writer) error {
	if _, err := r.Task(id); err != nil {
		return err
	}
	archive := tar.NewWriter(w)
	root, err := os.OpenRoot(r.taskFolder(id))
	if errors.Is(err, fs.ErrNotExist) {
		return archive.Close()
	}
	if err != nil {
		return fmt.Errorf("read the trajectory: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("read the trajectory: %w", err)
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !e.Type().IsRegular() {
			continue
		}
		if err := addFile(archive, root, e.Name()); err != nil {
			return fmt.Errorf("pack the trajectory: %w", err)
		}
	}
	return archive.Close()
}

// addFile packs the file as it is now: the file of a task that runs may grow meanwhile.
func addFile(archive *tar.Writer, root *os.Root, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o640, Size: info.Size(), ModTime: info.ModTime()}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(archive, io.LimitReader(f, info.Size()))
	return err
}
