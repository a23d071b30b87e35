package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"phonerack/cloud/vault"
)

// stateArgs and keyArgs are flags of serve and of what works on its files.
type stateArgs struct {
	State string `help:"Folder of what outlives a restart." default:"/var/lib/rackcloud" placeholder:"DIR"`
}

type keyArgs struct {
	KEK           string `name:"kek" help:"File of mode 0600 with the key-encryption keys; kek in the state folder without it." placeholder:"FILE"`
	KEKCredential string `name:"kek-credential" help:"systemd credential with the key-encryption keys." placeholder:"NAME"`
}

// openVault opens the key file. One is made only where nothing can be sealed yet: new keys beside an old database would
// make it unreadable without a word. database is the path of a SQLite file.
func openVault(state string, k keyArgs, database string) (*vault.Vault, error) {
	if k.KEKCredential != "" {
		return vault.OpenCredential(k.KEKCredential)
	}
	path := k.KEK
	if path == "" {
		path = filepath.Join(state, "kek")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		for _, old := range []string{database, filepath.Join(state, "ca.key")} {
			if _, err := os.Stat(old); err == nil {
				return nil, fmt.Errorf("the key file %s is missing, and %s needs it: restore it from a backup", path, old)
			}
		}
		if _, err := vault.Generate(path); err != nil {
			return nil, err
		}
	}
	return vault.Open(path)
}
