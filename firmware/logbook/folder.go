package logbook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Budget bounds what a Folder writes and keeps. The zero value has the defaults.
type Budget struct {
	PerDay int64         // bytes in 24 hours, as the card sees them; 0 is 512 KiB
	Kept   int64         // bytes of all files; 0 is 1 MiB
	Every  time.Duration // between two writes; 0 is 10 minutes
	// Now is the time; nil is time.Now. Its monotonic part counts, so that a clock that is set does not end a day.
	Now func() time.Time
}

const (
	defaultPerDay = 512 << 10
	defaultKept   = 1 << 20
	defaultEvery  = 10 * time.Minute

	block   = 4096      // bytes: a file takes whole ones
	extra   = 3 * block // of a new file in ext4: inode, folder, journal
	maxWait = 64 << 10  // bytes that wait to be written
)

// names are those of the files: a number that counts up.
var names = regexp.MustCompile(`^log-([0-9]{10})\.txt$`)

// A Folder keeps what matters of a log on disk. It is safe for concurrent use.
type Folder struct {
	dir    string
	budget Budget

	disk  sync.Mutex // held while files are written or read; before mu
	spent []write    // in the last 24 hours, the oldest first; guarded by disk, as is next
	next  int        // number of the next file

	mu      sync.Mutex      // not held while anything waits for the disk: whoever logs would wait too
	waiting strings.Builder // guarded by mu, as is what follows
	leftOut int             // lines since the last write
	lost    int64           // lines since the start
}

// write is a file that was written.
type write struct {
	at    time.Time
	bytes int64
}

// OpenFolder removes what a crash has left half written. The folder is made with the first file, in a folder that is there
// by then. What other processes wrote within 24 hours counts as spent, as far as the files' times can tell (see ages).
func OpenFolder(dir string, b Budget) (*Folder, error) {
	if b.PerDay <= 0 {
		b.PerDay = defaultPerDay
	}
	if b.Kept <= 0 {
		b.Kept = defaultKept
	}
	if b.Every <= 0 {
		b.Every = defaultEvery
	}
	if b.Now == nil {
		b.Now = time.Now
	}
	f := &Folder{dir: dir, budget: b}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the folder of the log: %w", err)
	}
	now := b.Now()
	var written []time.Time // of the files of spent, the oldest first: entries are sorted by name, and so by number
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".log-") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return nil, fmt.Errorf("clear the folder of the log: %w", err)
			}
			continue
		}
		number, ok := numberOf(e.Name())
		info, err := e.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		f.next = max(f.next, number+1)
		written = append(written, info.ModTime())
		f.spent = append(f.spent, write{bytes: cost(info.Size())})
	}
	for i, age := range ages(written, now) {
		f.spent[i].at = now.Add(-age)
	}
	return f, nil
}

// clockless is before anything that a clock may rightly say: a board without one that lasts begins in 1970 at each start.
var clockless = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// ages tells how long ago files were written, at least, the oldest first. A clock that is not set, or was set meanwhile, must neither
// count what was written long ago as written now, which would keep a log of nothing, nor the contrary. So time is what has passed
// from file to file, and since the clock of a board began in 1970, and between two times of a clock that was set.
func ages(written []time.Time, now time.Time) []time.Duration {
	all := make([]time.Duration, len(written))
	after, age := now, time.Duration(0) // of what was written after this one
	var set time.Time                   // the newest time of a clock that was set
	var setAge time.Duration            // and how long ago it was
	for i, at := range slices.Backward(written) {
		if set.IsZero() && !after.Before(clockless) {
			set, setAge = after, age
		}
		switch {
		case after.Before(clockless) && (at.After(after) || !at.Before(clockless)):
			age += max(0, after.Sub(time.Unix(0, 0))) // the board was started between both
		case at.Before(clockless) == after.Before(clockless):
			age += max(0, after.Sub(at))
		}
		if !set.IsZero() && !at.Before(clockless) {
			age = max(age, setAge+set.Sub(at))
		}
		all[i], after = age, at
	}
	return all
}

func numberOf(name string) (int, bool) {
	m := names.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// cost is what a file of so many bytes costs a card.
func cost(size int64) int64 { return (size+block-1)/block*block + extra }

// Handler returns a handler that keeps records of Warn and above, and such with the attribute "state".
func (f *Folder) Handler(o *slog.HandlerOptions) slog.Handler {
	return newLines(o, func(_ context.Context, r slog.Record, _, line string) error {
		if r.Level >= slog.LevelWarn || hasState(r) {
			f.add(r.Time.UTC().Format(time.RFC3339) + " " + r.Level.String() + " " + line + "\n")
		}
		return nil
	})
}

func hasState(r slog.Record) bool {
	found := false
	r.Attrs(func(a slog.Attr) bool {
		found = a.Key == "state"
		return !found
	})
	return found
}

func (f *Folder) add(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(line)
}

// put is add for who holds mu.
func (f *Folder) put(line string) {
	if f.waiting.Len()+len(line) > maxWait {
		f.leftOut++
		f.lost++
		return
	}
	f.waiting.WriteString(line)
}

// Run writes what has gathered now and then, and at the end when ctx does. A folder that cannot be written is tried again
// the next time; the log is not worth stopping for.
func (f *Folder) Run(ctx context.Context) error {
	tick := time.NewTicker(f.budget.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), f.Flush())
		case <-tick.C:
			_ = f.Flush() // it keeps what it could not write
		}
	}
}

// Flush writes what has gathered, if the budget allows: nothing at all if there is nothing.
func (f *Folder) Flush() error {
	f.disk.Lock()
	defer f.disk.Unlock()
	lines, leftOut := f.take()
	if lines == "" {
		f.giveBack("", leftOut)
		return nil
	}
	text := lines
	if leftOut > 0 {
		text += fmt.Sprintf("%s INFO lines left out to spare the card: %d\n", f.budget.Now().UTC().Format(time.RFC3339), leftOut)
	}
	if f.today()+cost(int64(len(text))) > f.budget.PerDay {
		n := strings.Count(lines, "\n")
		f.mu.Lock()
		defer f.mu.Unlock()
		f.leftOut, f.lost = f.leftOut+leftOut+n, f.lost+int64(n)
		return nil
	}
	// Counted before it is written: a write that fails has cost something as well.
	f.spent = append(f.spent, write{f.budget.Now(), cost(int64(len(text)))})
	if err := f.write(text); err != nil {
		f.giveBack(lines, leftOut)
		return fmt.Errorf("write the log: %w", err)
	}
	return f.thin()
}

// take takes the lines that wait, and how many were left out among them.
func (f *Folder) take() (lines string, leftOut int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	lines, leftOut = f.waiting.String(), f.leftOut
	f.waiting.Reset()
	f.leftOut = 0
	return lines, leftOut
}

// giveBack puts what was taken before the lines that came meanwhile, of which those go that find no room.
func (f *Folder) giveBack(lines string, leftOut int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newer := f.waiting.String()
	f.waiting.Reset()
	f.waiting.WriteString(lines)
	f.leftOut += leftOut
	for line := range strings.Lines(newer) {
		f.put(line)
	}
}

// LeftOut counts the lines that were not kept to spare the card, since the start.
func (f *Folder) LeftOut() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// today is what was spent in the last 24 hours; disk is held.
func (f *Folder) today() int64 {
	now := f.budget.Now()
	f.spent = slices.DeleteFunc(f.spent, func(w write) bool { return now.Sub(w.at) >= 24*time.Hour })
	var sum int64
	for _, w := range f.spent {
		sum += w.bytes
	}
	return sum
}

// write makes the next file, whole or not at all; disk is held.
func (f *Folder) write(text string) error {
	if err := f.make(); err != nil {
		return err
	}
	temp, err := os.CreateTemp(f.dir, ".log-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	_, err = temp.WriteString(text)
	err = errors.Join(err, temp.Chmod(0o640), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	name := fmt.Sprintf("log-%010d.txt", f.next)
	f.next++
	if err := os.Rename(temp.Name(), filepath.Join(f.dir, name)); err != nil {
		return err
	}
	return syncFolder(f.dir)
}

// make makes the folder so that it outlives a power cut, if it is missing.
func (f *Folder) make() error {
	err := os.Mkdir(f.dir, 0o750)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.dir))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// thin removes the oldest files above the bound, never the newest.
func (f *Folder) thin() error {
	files, err := f.files()
	if err != nil {
		return err
	}
	var kept int64
	for i, name := range slices.Backward(files) {
		info, err := os.Stat(filepath.Join(f.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("thin out the log: %w", err)
		}
		if kept += cost(info.Size()); kept > f.budget.Kept && i < len(files)-1 {
			if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
				return fmt.Errorf("thin out the log: %w", err)
			}
		}
	}
	return nil
}

// files lists the files' names, the oldest first.
func (f *Folder) files() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the folder of the log: %w", err)
	}
	var files []string
	for _, e := range entries { // sorted by name, and so by number
		if names.MatchString(e.Name()) {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

// Kept returns what is on disk, the oldest line first.
func (f *Folder) Kept() (string, error) {
	f.disk.Lock()
	defer f.disk.Unlock()
	files, err := f.files()
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			return "", fmt.Errorf("read the log: %w", err)
		}
		all.Write(text)
	}
	return all.String(), nil
}
