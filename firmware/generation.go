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

// nextGeneration is the number of the database, by which the cloud tells one that is new or was restored from the one it
// knew: what an older one had open never runs again. It is a file of its own, because the database is what gets lost. It
// rises with each database that was not simply opened, and for an identity that is not the one of last time.
func nextGeneration(state, kid string, outcome store.Outcome) (uint64, error) {
	path := filepath.Join(state, generationFile)
	last, owner, err := readGeneration(path)
	if err != nil {
		return 0, err
	}
	if last != 0 && owner == kid && outcome == store.Opened {
		return last, nil
	}
	next := last + 1
	text := fmt.Sprintf("%d %s\n", next, kid)
	f, err := os.CreateTemp(state, "."+generationFile+"-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return 0, err
	}
	return next, store.SyncFolder(state)
}

// readGeneration gives the number and the key id of the identity that it was used with; zero without a file.
func readGeneration(path string) (last uint64, kid string, err error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, "", nil
	}
	if err != nil {
		return 0, "", err
	}
	number, kid, _ := strings.Cut(strings.TrimSpace(string(raw)), " ")
	if last, err = strconv.ParseUint(number, 10, 62); err != nil || last == 0 {
		return 0, "", fmt.Errorf("%s does not hold a number: write one into it that is larger than the cloud's for this rack", path)
	}
	return last, kid, nil
}
