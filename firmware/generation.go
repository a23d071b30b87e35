package firmware

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"phonerack/firmware/store"
)

const generationFile = "generation"

// origin tells the cloud which database this is. It is a file of its own, because the database is what gets lost, or is
// put back from an old copy: what that has open never runs again.
//
//	<generation> <kid of the identity> <commits of the database, as far as they are noted>
type origin struct {
	state      string // folder
	generation uint64
	kid        string
	commits    uint64
}

// openOrigin reads the file and notes the database in it. The generation rises with each database that was not simply
// opened, for one that has fewer commits than were noted, and for an identity that is not the one of last time.
func openOrigin(state, kid string, found store.Recovery) (*origin, error) {
	o, err := readOrigin(state)
	if err != nil {
		return nil, err
	}
	if o.generation == 0 || o.kid != kid || found.Outcome != store.Opened || found.Commits < o.commits {
		o.generation, o.kid, o.commits = o.generation+1, kid, 0
	}
	return o, o.note(found.Commits)
}

// note stores how far the database has got. A copy of it that is older than this is known as one when it is put back.
func (o *origin) note(commits uint64) error {
	o.commits = commits
	f, err := os.CreateTemp(o.state, "."+generationFile+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = fmt.Fprintf(f, "%d %s %d\n", o.generation, o.kid, o.commits)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(o.state, generationFile)); err != nil {
		return err
	}
	return store.SyncFolder(o.state)
}

// readOrigin reads the file; the generation is zero without one. Files of earlier versions have no commits.
func readOrigin(state string) (*origin, error) {
	path := filepath.Join(state, generationFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &origin{state: state}, nil
	}
	if err != nil {
		return nil, err
	}
	o := &origin{state: state}
	number, rest, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	kid, commits, noted := strings.Cut(rest, " ")
	o.kid = kid
	if o.generation, err = strconv.ParseUint(number, 10, 62); err == nil && noted {
		o.commits, err = strconv.ParseUint(commits, 10, 64)
	}
	if err != nil || o.generation == 0 {
		return nil, fmt.Errorf("%s does not hold a number: write one into it that is larger than the cloud's for this rack", path)
	}
	return o, nil
}

// noteOrigin notes how far the database has got, before something that must not happen twice, and at the end.
func (r *Rack) noteOrigin() error {
	if r.cloud == nil {
		return nil
	}
	commits, err := r.store.Commits()
	if err != nil {
		return err
	}
	r.cloud.noting.Lock()
	defer r.cloud.noting.Unlock()
	if commits <= r.cloud.origin.commits {
		return nil
	}
	return r.cloud.origin.note(commits)
}
