package vault

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"phonerack/cloud/durable"
)

const (
	lineWord = "phonerack-kek-1"
	maxFile  = 64 << 10
	maxID    = 63
	maxLinks = 8 // symbolic links on the way to a key file
)

// ErrKeyFile: the key file cannot be used, as the error's text says.
var ErrKeyFile = errors.New("key file")

// key is one KEK.
type key struct {
	id     string
	secret []byte
}

// Open reads the key file at path. The file must be a regular one of mode 0600 or stricter, of this user or root, and so
// must a symbolic link that leads to it belong to this user or root.
func Open(path string) (*Vault, error) {
	return load(path, 0o077)
}

// OpenCredential reads the systemd credential of this name below $CREDENTIALS_DIRECTORY. systemd may show it as readable
// by the group, which is how it shows an access list for the service's user.
func OpenCredential(name string) (*Vault, error) {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	if dir == "" {
		return nil, fmt.Errorf("%w: no systemd credentials here: CREDENTIALS_DIRECTORY is not set", ErrKeyFile)
	}
	if name == "" || name != filepath.Base(name) || name == "." || name == ".." {
		return nil, fmt.Errorf("%w: %q is no name of a credential", ErrKeyFile, name)
	}
	return load(filepath.Join(dir, name), 0o037)
}

func load(path string, forbidden fs.FileMode) (*Vault, error) {
	content, err := read(path, forbidden)
	if err != nil {
		return nil, err
	}
	keys, err := parse(content)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrKeyFile, path, err)
	}
	return newVault(keys)
}

// read gives the content of a file that nobody else can read or exchange.
func read(path string, forbidden fs.FileMode) ([]byte, error) {
	if err := linksOK(path); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0) // a FIFO would block
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat() // of what was opened, whatever the name means by now
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w %s is not a regular file", ErrKeyFile, path)
	case modes && info.Mode().Perm()&forbidden != 0:
		return nil, fmt.Errorf("%w %s has mode %04o: others may use it; run chmod 600 %s", ErrKeyFile, path, info.Mode().Perm(), path)
	case !ours(info):
		return nil, fmt.Errorf("%w %s belongs to another user", ErrKeyFile, path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%w %s has more than %d bytes", ErrKeyFile, path, maxFile)
	}
	return content, nil
}

// linksOK refuses a symbolic link of somebody else, who could point it elsewhere.
func linksOK(path string) error {
	for range maxLinks {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		if !ours(info) {
			return fmt.Errorf("%w %s is a symbolic link of another user", ErrKeyFile, path)
		}
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return fmt.Errorf("%w %s is behind more than %d symbolic links", ErrKeyFile, path, maxLinks)
}

// parse reads the lines. No error quotes what might be a key.
func parse(content []byte) ([]key, error) {
	var keys []key
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != lineWord {
			return nil, fmt.Errorf("line %d is not %q, an id and a key", n, lineWord)
		}
		secret, err := base64.StdEncoding.Strict().DecodeString(fields[2])
		if err != nil || len(secret) != keySize {
			return nil, fmt.Errorf("line %d: the key is not %d bytes in base64", n, keySize)
		}
		if !idOK(fields[1]) {
			return nil, fmt.Errorf("line %d: the id is not 1 to %d of a-z, 0-9 and dash", n, maxID)
		}
		for _, k := range keys {
			if k.id == fields[1] {
				return nil, fmt.Errorf("line %d: the id %s is there twice", n, k.id)
			}
		}
		keys = append(keys, key{fields[1], secret})
	}
	if len(keys) == 0 {
		return nil, errors.New("no key is in it")
	}
	return keys, nil
}

func idOK(id string) bool {
	for _, c := range []byte(id) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// Generate makes a key file with one new KEK, whose id it gives. A file that is there is fs.ErrExist.
func Generate(path string) (id string, err error) { return generate(path, true, false) }

// Add adds a KEK to a key file, which seals from then on, and gives its id. A file that is not there is fs.ErrNotExist: a path that
// was mistyped would look as if the key were in use. A crash leaves the file as it was or whole.
func Add(path string) (id string, err error) { return generate(path, false, true) }

// generate makes a key file if it may, or adds to one if it may.
func generate(path string, makes, adds bool) (id string, err error) {
	if link, err := filepath.EvalSymlinks(path); err == nil { // the link stays, what it leads to is replaced
		if err = linksOK(path); err != nil {
			return "", err
		}
		path = link
	}
	dir := filepath.Dir(path)
	unlock, err := lock(dir) // two at once would lose one of the keys
	if err != nil {
		return "", err
	}
	defer unlock()
	content, err := read(path, 0o077)
	switch {
	case err == nil && !adds:
		return "", &fs.PathError{Op: "make", Path: path, Err: fs.ErrExist}
	case err == nil:
		if _, err = parse(content); err != nil {
			return "", fmt.Errorf("%w %s: %w", ErrKeyFile, path, err)
		}
	case !errors.Is(err, fs.ErrNotExist) || !makes:
		return "", err
	default:
		content = []byte("# Key-encryption keys of rackcloud. The last one seals. Keep a copy apart from the database's.\n")
	}
	secret := make([]byte, keySize)
	_, _ = rand.Read(secret)
	id = strings.ToLower(rand.Text()[:10])
	if len(content) > 0 && !bytes.HasSuffix(content, []byte("\n")) {
		content = append(content, '\n')
	}
	content = fmt.Appendf(content, "%s %s %s\n", lineWord, id, base64.StdEncoding.EncodeToString(secret))
	return id, durable.WriteFile(path, content, 0o600)
}
