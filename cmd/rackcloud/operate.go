package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"phonerack/cloud/api"
	"phonerack/cloud/durable"
	"phonerack/cloud/fleet"
	"phonerack/cloud/vault"
	"phonerack/cmd/internal/table"
	"phonerack/sync/wire"
)

type hostCommands struct {
	Add       hostAdd       `cmd:"" help:"Make a rack known and write its bundle, which exists nowhere else."`
	List      hostList      `cmd:"" help:"List racks."`
	Show      hostShow      `cmd:"" help:"Show a rack."`
	Configure hostConfigure `cmd:"" help:"Change what a rack should be set to; without --set and --unset, show it."`
	Rotate    hostRotate    `cmd:"" help:"Write a new bundle; the old one ends when the new one is used, or after seven days."`
	Issue     hostIssue     `cmd:"" help:"Write a new bundle and end all others at once, for a rack that was stolen or lost its files."`
	Revoke    hostRevoke    `cmd:"" help:"End all that a rack can do, for good."`
}

type hostAdd struct {
	Name string   `help:"What people call it."`
	Tag  []string `help:"A tag that tasks can name; may be repeated."`
	Out  string   `required:"" help:"File for the bundle, made with mode 0600." placeholder:"FILE"`
}

func (c hostAdd) Run(s *session) error {
	return s.bundle("/v1/admin/hosts", map[string]any{"name": c.Name, "tags": append([]string{}, c.Tag...)}, c.Out)
}

type bundleArgs struct {
	Rack string `arg:"" help:"Id of the rack."`
	Out  string `required:"" help:"File for the bundle, made with mode 0600." placeholder:"FILE"`
}

type hostRotate struct{ bundleArgs }

func (c hostRotate) Run(s *session) error {
	return s.bundle("/v1/admin/hosts/"+url.PathEscape(c.Rack)+"/rotate", struct{}{}, c.Out)
}

type hostIssue struct{ bundleArgs }

func (c hostIssue) Run(s *session) error {
	return s.bundle("/v1/admin/hosts/"+url.PathEscape(c.Rack)+"/issue", struct{}{}, c.Out)
}

// bundle asks for a bundle and writes it. The file is made first: a bundle that cannot be kept must not be issued.
func (s *session) bundle(path string, body any, out string) error {
	if err := writeSecretFile(out, nil); err != nil {
		return err
	}
	var b wire.Bundle
	err := s.client.call(s.ctx, http.MethodPost, path, nil, body, &b)
	var raw []byte
	if err == nil {
		raw, err = b.File()
	}
	if err == nil {
		err = durable.WriteFile(out, raw, 0o600) // it exists nowhere else
	}
	if err != nil {
		return errors.Join(err, os.Remove(out))
	}
	result := map[string]string{"rack_id": b.Rack, "tenant": b.Tenant, "kid": b.KID, "file": out}
	return show(s, result, nil, func(map[string]string) error {
		_, err := fmt.Fprintf(s.stdout, "%s\n", b.Rack)
		return err
	})
}

type hostList struct{}

func (hostList) Run(s *session) error {
	all, err := list[fleet.Host](s, "/v1/admin/hosts", nil, 0)
	return show(s, all, err, func(all []fleet.Host) error {
		t := table.New(s.stdout, "RACK", "NAME", "STATE", "SEEN", "SLOTS", "TAGS")
		for _, h := range all {
			t.Row(h.Rack, h.Name, hostState(h), when(h.LastSeen), strconv.Itoa(len(h.Slots)), strings.Join(h.Tags, ","))
		}
		return t.Flush()
	})
}

// hostState is what a person wants to know first of a rack. A connection of one that was revoked may last, and does not count.
func hostState(h fleet.Host) string {
	if h.Revoked != 0 {
		return "revoked"
	}
	return h.Presence
}

type hostShow struct {
	Rack string `arg:"" help:"Id of the rack."`
}

func (c hostShow) Run(s *session) error { return s.showHost(http.MethodGet, c.Rack, "") }

type hostRevoke struct {
	Rack string `arg:"" help:"Id of the rack."`
}

func (c hostRevoke) Run(s *session) error { return s.showHost(http.MethodPost, c.Rack, "/revoke") }

func (s *session) showHost(method, rack, act string) error {
	var h fleet.Host
	var body any
	if method == http.MethodPost {
		body = struct{}{}
	}
	err := s.client.call(s.ctx, method, "/v1/admin/hosts/"+url.PathEscape(rack)+act, nil, body, &h)
	return show(s, h, err, func(h fleet.Host) error {
		fmt.Fprintf(s.stdout, "%s %s: %s, seen %s, generation %d\n", h.Rack, table.Plain(h.Name), hostState(h), when(h.LastSeen), h.Generation)
		if h.Revoked != 0 {
			fmt.Fprintf(s.stdout, "revoked %s\n", when(h.Revoked))
		}
		if c := h.Settings; c != nil {
			fmt.Fprintf(s.stdout, "settings: version %d, %s\n", c.Version, applied(c.Version, c.Applied))
		}
		t := table.New(s.stdout, "SLOT", "STATE", "PHONE", "MODEL")
		for _, slot := range h.Slots {
			t.Row(strconv.Itoa(slot.Slot), slot.State, slot.Phone, slot.Model)
		}
		return t.Flush()
	})
}

type providerCommands struct {
	Add      providerAdd      `cmd:"" help:"Add a profile; it is not active yet."`
	List     providerList     `cmd:"" help:"List profiles."`
	Activate providerActivate `cmd:"" help:"Make a profile the one that decides."`
	Rotate   providerRotate   `cmd:"" help:"Replace the key of a profile."`
}

type providerAdd struct {
	Name      string        `arg:"" help:"What people call the profile."`
	Provider  string        `required:"" help:"anthropic, openai, openai-responses or scripted."`
	Model     string        `help:"Model of the provider."`
	BaseURL   string        `name:"base-url" help:"Address of the provider, if it is not its own."`
	Timeout   time.Duration `help:"Of a whole call, retries included." default:"60s"`
	Option    string        `help:"Options as a JSON object." placeholder:"JSON"`
	PerMinute int64         `help:"Requests per minute; 0 for no limit."`
	PerDay    int64         `help:"Tokens per day; 0 for no limit."`
	PriceIn   int64         `help:"Millionths of the currency per million tokens in."`
	PriceOut  int64         `help:"Millionths of the currency per million tokens out."`
	Key       string        `help:"File of mode 0600 with the API key, or - for standard input." placeholder:"FILE"`
	Activate  bool          `help:"Make it the one that decides."`
}

func (c providerAdd) Run(s *session) error {
	n := api.NewProvider{
		Name: c.Name, Provider: c.Provider, Model: c.Model, BaseURL: c.BaseURL, TimeoutMS: c.Timeout.Milliseconds(),
		PerMinute: c.PerMinute, PerDay: c.PerDay, PriceIn: c.PriceIn, PriceOut: c.PriceOut,
	}
	if c.Option != "" {
		n.Options = json.RawMessage(c.Option)
		if !json.Valid(n.Options) {
			return fmt.Errorf("%w: --option is no JSON", errUsage)
		}
	}
	var err error
	if c.Key != "" {
		if n.Key, err = s.readSecret(c.Key); err != nil {
			return err
		}
	}
	var p api.Provider
	if err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/providers", nil, n, &p); err != nil {
		return err
	}
	if c.Activate {
		return providerActivate{p.ID}.Run(s)
	}
	return s.showProviders([]api.Provider{p}, nil)
}

type providerList struct{}

func (providerList) Run(s *session) error {
	all, err := list[api.Provider](s, "/v1/admin/providers", nil, 0)
	return s.showProviders(all, err)
}

type providerActivate struct {
	Name string `arg:"" help:"Name or id of the profile."`
}

func (c providerActivate) Run(s *session) error {
	var p api.Provider
	err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/providers/"+url.PathEscape(c.Name)+"/activate", nil, struct{}{}, &p)
	return s.showProviders([]api.Provider{p}, err)
}

type providerRotate struct {
	Name string `arg:"" help:"Name or id of the profile."`
	Key  string `help:"File of mode 0600 with the new API key, or - for standard input." default:"-" placeholder:"FILE"`
}

func (c providerRotate) Run(s *session) error {
	key, err := s.readSecret(c.Key)
	if err != nil {
		return err
	}
	var p api.Provider
	err = s.client.call(s.ctx, http.MethodPost, "/v1/admin/providers/"+url.PathEscape(c.Name)+"/rotate", nil, map[string]string{"key": key}, &p)
	return s.showProviders([]api.Provider{p}, err)
}

func (s *session) showProviders(all []api.Provider, err error) error {
	return show(s, all, err, func(all []api.Provider) error {
		t := table.New(s.stdout, "NAME", "PROVIDER", "MODEL", "TIMEOUT", "ACTIVE", "KEY", "ID")
		for _, p := range all {
			active := ""
			if p.Active {
				active = "yes"
			}
			t.Row(p.Name, p.Provider, p.Model, (time.Duration(p.TimeoutMS) * time.Millisecond).String(), active, p.State, p.ID)
		}
		return t.Flush()
	})
}

type keyCommands struct {
	Add keyAdd `cmd:"" help:"Add a key to the key file; it seals after the next start, which seals everything anew."`
}

type keyAdd struct {
	File string `arg:"" help:"The key file, such as /var/lib/rackcloud/kek."`
	New  bool   `help:"Make a key file where there is none."`
}

// Run adds to a key file only if it is there: one that a mistyped path made would seal nothing, and look as if it did.
func (c keyAdd) Run(s *session) error {
	do := vault.Add
	if c.New {
		do = vault.Generate
	}
	id, err := do(c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !c.New:
		err = fmt.Errorf("there is no key file %s: correct the path, or make a new file with --new: %w", c.File, err)
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("there is a key file %s already, and nothing is overwritten: leave --new away to add a key to it: %w", c.File, err)
	}
	return show(s, map[string]string{"key_id": id}, err, func(map[string]string) error {
		_, err := fmt.Fprintf(s.stdout, "%s\n", id)
		return err
	})
}

type tokenCommand struct {
	State string `help:"State folder of rackcloud serve, which reads the token's hash at its next start." default:"/var/lib/rackcloud" placeholder:"DIR"`
	Out   string `required:"" help:"File for the token, made with mode 0600." placeholder:"FILE"`
}

func (c tokenCommand) Run(s *session) error {
	token := "pra_" + rand.Text()
	hash := api.TokenHash(token)
	if err := writeSecretFile(c.Out, []byte(token+"\n")); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(c.State, tokenFile), []byte(hex.EncodeToString(hash[:])+"\n"), 0o600); err != nil {
		return err
	}
	if s.json {
		return nil
	}
	_, err := fmt.Fprintf(s.stdout, "%s holds the token; rackcloud serve takes it from its next start on\n", c.Out)
	return err
}

// readTokenHash reads the hash of the admin token; zero if there is none.
func readTokenHash(path string) (hash [32]byte, err error) {
	text, err := readSecretFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return hash, nil
	}
	if err != nil {
		return hash, err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(hash) {
		return hash, fmt.Errorf("%s is no SHA-256: make a token by rackcloud token", path)
	}
	copy(hash[:], raw)
	return hash, nil
}

type backupCommand struct {
	Path string `arg:"" help:"File for the copy, on the machine of rackcloud; it must not exist."`
}

func (c backupCommand) Run(s *session) error {
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return err
	}
	err = s.client.call(s.ctx, http.MethodPost, "/v1/admin/backup", nil, map[string]string{"path": path}, nil)
	return show(s, map[string]string{"path": path}, err, func(map[string]string) error {
		_, err := fmt.Fprintln(s.stdout, path)
		return err
	})
}

// when shows a time of the API.
func when(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04:05")
}
