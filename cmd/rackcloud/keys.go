package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"phonerack/cloud/store"
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
// make it unreadable without a word. database is the path of a SQLite file, made that of a key file that is new.
func openVault(state string, k keyArgs, database string) (v *vault.Vault, made string, err error) {
	if k.KEKCredential != "" {
		v, err = vault.OpenCredential(k.KEKCredential)
		return v, "", err
	}
	path := k.KEK
	if path == "" {
		path = filepath.Join(state, "kek")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		for _, old := range []string{database, filepath.Join(state, "ca.key")} {
			if _, err := os.Stat(old); err == nil {
				return nil, "", fmt.Errorf("the key file %s is missing, and %s needs it: restore it from a backup", path, old)
			}
		}
		if _, err := vault.Generate(path); err != nil {
			return nil, "", err
		}
		made = path
	}
	v, err = vault.Open(path)
	return v, made, err
}

// checkNewKey refuses a key that was just made where the database has values under another one: with it this replica would
// seal what the others cannot read. The key goes again.
func checkNewKey(ctx context.Context, s *store.Store, writing, made string) error {
	if made == "" {
		return nil
	}
	foreign, err := s.System().SealedUnder(ctx, writing, 1)
	if err == nil && len(foreign) > 0 {
		err = fmt.Errorf("the database is that of other replicas or of an older installation, and %s was missing: copy kek, ca.pem and ca.key from the state folder of a replica, or from a backup", made)
	}
	if err != nil {
		return errors.Join(err, os.Remove(made))
	}
	return nil
}
