package status

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"phonerack/sync/wire"
)

// Bounds of a bundle.
const (
	bundleTimeout = 25 * time.Second // less than the answer's; what was not taken by then is left out
	bundleLines   = 5000             // of the log
	bundleEvents  = 500
	maxAttachment = 1 << 20  // bytes of a file
	maxAttached   = 4 << 20  // bytes together
	maxPictures   = 20 << 20 // bytes together
)

// bundled is a zip file whose entries have the time at which it was made, or the earliest that there is on a board without a clock:
// none at all is no date to some programs.
type bundled struct {
	*zip.Writer
	made time.Time
}

func newBundled(w io.Writer, c Clock) bundled {
	made := time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	if c.Trusted && c.Time.After(made) {
		made = c.Time
	}
	return bundled{zip.NewWriter(w), made}
}

// Create begins a file.
func (b bundled) Create(name string) (io.Writer, error) {
	return b.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: b.made})
}

// support is the page that offers the bundle.
func (p *Page) support(w http.ResponseWriter, r *http.Request) error {
	v := p.view(r, "support.title", "")
	return p.answer(w, r, http.StatusOK, "support.html", v, map[string]string{"bundle": "/support/bundle.zip"})
}

// bundle sends everything that helps somebody who is not here, without secrets; with pictures=1 also what each phone
// shows now.
func (p *Page) bundle(w http.ResponseWriter, r *http.Request) error {
	select {
	case p.bundles <- struct{}{}:
		defer func() { <-p.bundles }()
	default:
		return wire.Refuse(wire.LimitExceeded, map[string]any{"what": "bundles at the same time", "limit": maxBundles})
	}
	ctx, cancel := context.WithTimeout(r.Context(), bundleTimeout)
	defer cancel()
	snap := p.o.Source.Snapshot()
	var b bytes.Buffer
	z := newBundled(&b, snap.Rack.Clock)
	if err := p.pack(ctx, z, snap, r.URL.Query().Get("pictures") == "1"); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	name := "rack"
	if bundleName.MatchString(snap.Rack.Name) {
		name = snap.Rack.Name
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="phonerack-%s.zip"`, name))
	return send(w, http.StatusOK, b.Bytes())
}

var bundleName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// pack puts the files of a bundle together. What one source refuses is said in errors.txt and costs nothing else.
func (p *Page) pack(ctx context.Context, z bundled, snap Snapshot, pictures bool) error {
	var faults strings.Builder
	put := func(name string, v any) error {
		raw, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			return err
		}
		return p.put(z, name, raw)
	}
	if err := put("snapshot.json", snap); err != nil {
		return err
	}
	if err := put("events.json", p.o.Source.Events(0, bundleEvents)); err != nil {
		return err
	}
	tasks, err := p.o.Source.Tasks(ctx, maxTasks)
	if err != nil {
		fmt.Fprintln(&faults, "tasks:", err)
	}
	if err := put("tasks.json", tasks); err != nil {
		return err
	}
	var log strings.Builder
	for _, l := range p.o.Source.Log(0, bundleLines) {
		fmt.Fprintln(&log, l.Time.Format(time.RFC3339), l.Level, l.Text)
	}
	for _, s := range snap.Services {
		fmt.Fprintln(&log, "last of", s.Name+":", s.LastLog)
	}
	if err := p.put(z, "log.txt", []byte(log.String())); err != nil {
		return err
	}
	if err := p.attach(ctx, z); err != nil {
		return err
	}
	if pictures {
		if err := p.putPictures(ctx, z, snap, &faults); err != nil {
			return err
		}
	}
	return p.put(z, "errors.txt", []byte(faults.String()))
}

// put adds a text without its secrets.
func (p *Page) put(z bundled, name string, text []byte) error {
	w, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = w.Write(redact(text, p.o.PIN))
	return err
}

var attachment = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,40}\.[a-z]{1,8}$`)

// attach adds what the source brings.
func (p *Page) attach(ctx context.Context, z bundled) error {
	files := p.o.Source.Attachments(ctx)
	room := maxAttached
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !attachment.MatchString(name) { // it becomes a path where the bundle is unpacked
			continue
		}
		text := files[name]
		if most := min(room, maxAttachment); len(text) > most {
			text = text[len(text)-most:] // the end of a log is what matters
		}
		room -= len(text)
		if err := p.put(z, "files/"+name, text); err != nil {
			return err
		}
	}
	return nil
}

// putPictures adds the screens of the phones that are ready.
func (p *Page) putPictures(ctx context.Context, z bundled, snap Snapshot, faults *strings.Builder) error {
	room := maxPictures
	for _, s := range snap.Slots {
		if s.Phone == nil || !s.Phone.Ready {
			continue
		}
		picture, err := p.o.Source.Picture(ctx, s.Number)
		if err == nil && len(picture.JPEG) > room {
			err = errors.New("no room left in the bundle")
		}
		if err != nil {
			fmt.Fprintf(faults, "picture of slot %d: %v\n", s.Number, err)
			continue
		}
		room -= len(picture.JPEG)
		w, err := z.Create(fmt.Sprintf("pictures/slot-%d.jpg", s.Number))
		if err != nil {
			return err
		}
		if _, err := w.Write(picture.JPEG); err != nil {
			return err
		}
	}
	return nil
}
