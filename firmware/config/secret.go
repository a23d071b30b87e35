package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"phonerack/agent/planner/provider"
)

const maxKeyFile = 4 << 10 // bytes

// absent is the path of a file that is not there. It is fs.ErrNotExist.
type absent string

func (a absent) Error() string {
	return string(a) + " does not exist: write it with mode 0600, or correct the path"
}

// Is implements what errors.Is asks.
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }

// Secret reads a file that nobody but its owner can read, and whose owner is this process's user or root. The errors
// tell what to do and nothing of what is in it.
func Secret(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened (%v): give it to the user of rackd", path, unwrap(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others: make it private with chmod 600", path)
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && sys.Uid != uint32(os.Geteuid()) {
		return nil, fmt.Errorf("%s belongs to somebody else", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(raw)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	if len(raw) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return raw, nil
}

// Config is the provider's profile with its key, which is read now.
func (p Provider) Config() (provider.Config, error) {
	if p.Provider == "" || p.Model == "" {
		return provider.Config{}, errors.New("provider and model are needed")
	}
	kind := provider.Kind(p.Provider)
	if p.Provider == "openai" {
		kind = provider.OpenAIChat
	}
	c := provider.Config{Profile: "direct", Provider: kind, Model: p.Model, BaseURL: p.BaseURL, Timeout: time.Duration(p.Timeout)}
	if c.Timeout == 0 {
		c.Timeout = provider.DefaultTimeout
	}
	if len(p.Options) > 0 {
		raw, err := json.Marshal(p.Options)
		if err != nil {
			return provider.Config{}, fmt.Errorf("options: %w", err)
		}
		if c.Options, err = provider.ParseOptions(raw); err != nil {
			return provider.Config{}, fmt.Errorf("options: %w", err)
		}
	}
	if p.KeyFile != "" {
		key, err := Secret(p.KeyFile, maxKeyFile)
		if err != nil {
			return provider.Config{}, err
		}
		c.Key = provider.NewSecret(string(bytes.TrimSpace(key)))
	}
	_, err := provider.New(c)
	return c, err
}
