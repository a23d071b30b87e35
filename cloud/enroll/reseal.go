package enroll

import (
	"context"
	"log/slog"

	"phonerack/cloud/store"
	"phonerack/cloud/vault"
)

const resealBatch = 200

// SealAnew seals everything in the store under the vault's writing key. What cannot be decrypted stays as it is: the log
// names it, and the rest goes on.
func SealAnew(ctx context.Context, s *store.Store, v *vault.Vault, log *slog.Logger) error {
	failed, done := 0, 0
	for {
		all, err := s.System().SealedUnder(ctx, v.Writing(), resealBatch+failed)
		if err != nil {
			return err
		}
		before := done
		failed = 0
		for _, old := range all {
			b := vault.Binding{Purpose: old.Purpose, Owner: append([]string{old.Tenant}, old.Owner...), Version: old.Version}
			value, err := v.Reseal(b, old.Value)
			if err != nil {
				failed++
				log.Error("a value cannot be decrypted and stays sealed under its old key", "purpose", old.Purpose, "owner", old.Owner, "key", old.KEK, "error", err)
				continue
			}
			ok, err := s.System().Reseal(ctx, old, v.Writing(), value)
			if err != nil {
				return err
			}
			if ok {
				done++
			}
		}
		if done == before {
			break
		}
	}
	if done > 0 {
		log.Info("values were sealed anew", "number", done, "key", v.Writing())
	}
	return nil
}
