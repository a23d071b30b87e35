package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"phonerack/cloud/durable"
)

// readSecretFile reads a file that nobody else can read.
func readSecretFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || !private(info) {
		return "", fmt.Errorf("%s can be read by others: close it with chmod 600", path)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", fmt.Errorf("%s is empty", path)
	}
	return secret, nil
}

// writeSecretFile makes a file of mode 0600 that was not there before.
func writeSecretFile(path string, content []byte) error {
	err := durable.CreateFile(path, content, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: choose another name, nothing is overwritten", path)
	}
	return err
}
