package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"phonerack/agent/skill/model"
	"phonerack/cloud/api"
	"phonerack/cloud/catalog"
	"phonerack/cmd/internal/table"
	"phonerack/sync/wire"
)

type skillCommands struct {
	Publish skillPublish `cmd:"" help:"Publish a file, or all skills below a folder."`
	List    skillList    `cmd:"" help:"List published skills."`
	Show    skillShow    `cmd:"" help:"Show a skill with its contents, as JSON."`
	Remove  skillRemove  `cmd:"" help:"Take a skill away from all who have it."`
}

type skillPublish struct {
	Path         string `arg:"" help:"File, or folder with .yaml, .yml, .json and .md files." placeholder:"DIR|FILE"`
	Subscription string `required:"" help:"Subscription that the skills belong to." placeholder:"ID"`
	AllowHidden  bool   `help:"Publish also what has invisible characters, which can carry instructions that nobody sees."`
}

// published is what became of a file.
type published struct {
	File  string         `json:"file"`
	Skill *catalog.Skill `json:"skill,omitempty"`
	Error *wire.Refusal  `json:"error,omitempty"`

	text string
}

func (c skillPublish) Run(s *session) error {
	all, err := skillFiles(c.Path)
	if err != nil {
		return err
	}
	failed := 0
	for i := range all {
		if all[i].Error == nil {
			if err := c.publish(s, &all[i]); err != nil {
				return err
			}
		}
		if all[i].Error != nil {
			failed++
		}
	}
	err = show(s, all, nil, func(all []published) error {
		t := table.New(s.stdout, "FILE", "SKILL", "VERSION", "RESULT")
		for _, p := range all {
			switch {
			case p.Error != nil:
				t.Row(p.File, "", "", p.Error.Sentence(s.lang))
			case p.Skill.Unchanged:
				t.Row(p.File, p.Skill.ID, p.Skill.Version, "unchanged")
			default:
				t.Row(p.File, p.Skill.ID, p.Skill.Version, strings.TrimSpace("published "+strings.Join(p.Skill.Hidden, "; ")))
			}
		}
		return t.Flush()
	})
	if err == nil && failed > 0 {
		return exitCode(exitRefused)
	}
	return err
}

// publish publishes a file. A refusal is part of the result; an error ends all.
func (c skillPublish) publish(s *session, p *published) error {
	p.Skill = &catalog.Skill{}
	n := catalog.NewSkill{Subscription: c.Subscription, File: filepath.Base(p.File), Content: p.text, AllowHidden: c.AllowHidden}
	err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/skills", nil, n, p.Skill)
	if refusal, ok := errors.AsType[*wire.Refusal](err); ok && refusal.Code != wire.Unauthenticated {
		p.Skill, p.Error, err = nil, refusal, nil
	}
	return err
}

// skillFiles reads the files to publish: one, or those of a folder and of the folders below it, by name. Hidden ones and
// README.md are no skills. What cannot be published is told with its reason, and so are two files that hold the same skill: one of
// them would take the other's place.
func skillFiles(path string) ([]published, error) {
	root, err := filepath.EvalSymlinks(path) // the folder itself may be a link; what lies in it may not
	if err != nil {
		return nil, plainly(path, err)
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, plainly(path, err)
	}
	if !info.IsDir() {
		return []published{readSkill(path)}, nil
	}
	all := []published{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return plainly(file, err)
		}
		hidden := file != root && strings.HasPrefix(d.Name(), ".")
		skill := slices.Contains([]string{".yaml", ".yml", ".json", ".md"}, filepath.Ext(file)) && d.Name() != "README.md"
		switch {
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir(), hidden, !skill:
		case d.Type()&fs.ModeSymlink != 0:
			all = append(all, published{File: file, Error: unfit("it is a link, and the folder may come from elsewhere")})
		default:
			all = append(all, readSkill(file))
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: there is no .yaml, .yml, .json or .md file below %s", errUsage, path)
	}
	twice(all)
	return all, err
}

func unfit(reason string) *wire.Refusal {
	return wire.Refuse(wire.BadRequest, map[string]any{"reason": reason})
}

// readSkill reads a file as it has to be sent: JSON has no other bytes than UTF-8, and would hold others than the file's.
func readSkill(file string) published {
	p := published{File: file}
	raw, err := readFile(file, model.MaxSkillBytes)
	switch {
	case err != nil:
		p.Error = unfit(err.Error())
	case !utf8.Valid(raw):
		p.Error = unfit("it is not UTF-8 text")
	}
	p.text = string(raw)
	return p
}

// twice marks files that hold the same skill. What cannot be read here is the cloud's to refuse.
func twice(all []published) {
	files := map[string][]int{}
	for i, p := range all {
		if p.Error != nil {
			continue
		}
		if s, err := model.ParseDraft(filepath.Base(p.File), []byte(p.text)); err == nil {
			files[s.ID] = append(files[s.ID], i)
		}
	}
	for id, of := range files {
		for n, i := range of {
			if len(of) > 1 {
				all[i].Error = unfit(fmt.Sprintf("the skill %s is in %s too", id, all[of[(n+1)%len(of)]].File))
			}
		}
	}
}

type skillList struct {
	Subscription string `help:"Only those of a subscription." placeholder:"ID"`
}

func (c skillList) Run(s *session) error {
	query := url.Values{}
	if c.Subscription != "" {
		query.Set("subscription", c.Subscription)
	}
	all, err := list[catalog.Skill](s, "/v1/admin/skills", query, 0)
	return show(s, all, err, s.skillTable)
}

func (s *session) skillTable(all []catalog.Skill) error {
	t := table.New(s.stdout, "SKILL", "VERSION", "KIND", "SUBSCRIPTION", "UPDATED", "NAME")
	for _, k := range all {
		t.Row(k.ID, k.Version, k.Kind, k.Subscription, k.UpdatedAt.Local().Format(time.DateTime), k.Name)
	}
	return t.Flush()
}

type skillShow struct {
	Skill string `arg:"" help:"Id of the skill."`
}

func (c skillShow) Run(s *session) error {
	var k api.PublishedSkill
	if err := s.client.call(s.ctx, http.MethodGet, "/v1/admin/skills/"+url.PathEscape(c.Skill), nil, nil, &k); err != nil {
		return err
	}
	return s.print(k)
}

type skillRemove struct {
	Skill string `arg:"" help:"Id of the skill."`
}

func (c skillRemove) Run(s *session) error {
	err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/skills/"+url.PathEscape(c.Skill)+"/remove", nil, struct{}{}, nil)
	return show(s, struct{}{}, err, func(struct{}) error { return nil })
}

type subscriptionCommands struct {
	Create subscriptionCreate `cmd:"" help:"Make a subscription that nobody has yet."`
	List   subscriptionList   `cmd:"" help:"List subscriptions."`
	Show   subscriptionShow   `cmd:"" help:"Show a subscription with its grants."`
	Grant  subscriptionGrant  `cmd:"" help:"Give a subscription to racks and agents."`
	Revoke subscriptionRevoke `cmd:"" help:"Take exactly one grant back."`
	Open   subscriptionOpen   `cmd:"" help:"Open a closed subscription again."`
	Close  subscriptionClose  `cmd:"" help:"Close a subscription for all who have it; the grants stay."`
}

type subscriptionArg struct {
	Subscription string `arg:"" help:"Id of the subscription."`
}

func (c subscriptionArg) path(more string) string {
	return "/v1/admin/subscriptions/" + url.PathEscape(c.Subscription) + more
}

type subscriptionCreate struct {
	subscriptionArg
	Name string `help:"What people call it."`
}

func (c subscriptionCreate) Run(s *session) error {
	return s.subscription(http.MethodPost, "/v1/admin/subscriptions", api.NewSubscription{ID: c.Subscription, Name: c.Name})
}

type subscriptionList struct{}

func (subscriptionList) Run(s *session) error {
	all, err := list[catalog.Subscription](s, "/v1/admin/subscriptions", nil, 0)
	return show(s, all, err, func(all []catalog.Subscription) error {
		t := table.New(s.stdout, "SUBSCRIPTION", "NAME", "STATE", "CREATED")
		for _, u := range all {
			t.Row(u.ID, u.Name, stateOf(u), u.Created.Local().Format(time.DateTime))
		}
		return t.Flush()
	})
}

func stateOf(u catalog.Subscription) string {
	if u.Active {
		return "open"
	}
	return "closed"
}

type subscriptionShow struct{ subscriptionArg }

func (c subscriptionShow) Run(s *session) error {
	return s.subscription(http.MethodGet, c.path(""), nil)
}

type grantArgs struct {
	subscriptionArg
	Rack  string `help:"Id of the rack; all racks without it." placeholder:"ID"`
	Agent string `help:"Who asks on the rack: task, person, mcp, or mcp-NAME for the MCP clients with that token; all without it." placeholder:"NAME"`
}

func (c grantArgs) grant() catalog.Grant { return catalog.Grant{Rack: c.Rack, Agent: c.Agent} }

type subscriptionGrant struct{ grantArgs }

func (c subscriptionGrant) Run(s *session) error {
	return s.subscription(http.MethodPost, c.path("/grants"), c.grant())
}

type subscriptionRevoke struct{ grantArgs }

func (c subscriptionRevoke) Run(s *session) error {
	return s.subscription(http.MethodPost, c.path("/revokes"), c.grant())
}

type subscriptionOpen struct{ subscriptionArg }

func (c subscriptionOpen) Run(s *session) error {
	return s.subscription(http.MethodPatch, c.path(""), api.SubscriptionState{Active: true})
}

type subscriptionClose struct{ subscriptionArg }

func (c subscriptionClose) Run(s *session) error {
	return s.subscription(http.MethodPatch, c.path(""), api.SubscriptionState{})
}

// subscription asks for something whose answer is a subscription.
func (s *session) subscription(method, path string, body any) error {
	var u catalog.Subscription
	err := s.client.call(s.ctx, method, path, nil, body, &u)
	return show(s, u, err, func(u catalog.Subscription) error {
		fmt.Fprintf(s.stdout, "%s %s: %s\n", u.ID, table.Plain(u.Name), stateOf(u))
		t := table.New(s.stdout, "RACK", "AGENT")
		for _, g := range u.Grants {
			t.Row(orAll(g.Rack), orAll(g.Agent))
		}
		return t.Flush()
	})
}

func orAll(s string) string {
	if s == "" {
		return "all"
	}
	return s
}

type catalogCommands struct {
	Show catalogShow        `cmd:"" help:"Show what a rack is entitled to, as its manifest says it."`
	Key  catalogKeyCommands `cmd:"" help:"Keys that sign manifests."`
}

type catalogShow struct {
	Rack string `arg:"" help:"Id of the rack."`
}

func (c catalogShow) Run(s *session) error {
	var v catalog.View
	err := s.client.call(s.ctx, http.MethodGet, "/v1/admin/hosts/"+url.PathEscape(c.Rack)+"/skills", nil, nil, &v)
	return show(s, v, err, func(v catalog.View) error {
		fmt.Fprintf(s.stdout, "version %d of epoch %d\n", v.Version, v.Epoch)
		t := table.New(s.stdout, "SUBSCRIPTION", "STATE", "AGENTS")
		for _, u := range v.Subscriptions {
			agents := ""
			if u.State == model.Active {
				agents = orAll(strings.Join(u.Agents, ","))
			}
			t.Row(u.ID, u.State, agents)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		return s.skillTable(v.Skills)
	})
}

type catalogKeyCommands struct {
	List     catalogKeyList     `cmd:"" help:"List them, the oldest first."`
	Add      catalogKeyAdd      `cmd:"" help:"Make the next key: racks hear of it with their next manifest."`
	Activate catalogKeyActivate `cmd:"" help:"Sign with the next key."`
	Drop     catalogKeyDrop     `cmd:"" help:"End an old key: a rack that has not heard of a newer one needs a new identity."`
}

type catalogKeyList struct{}

func (catalogKeyList) Run(s *session) error {
	all, err := list[catalog.Key](s, "/v1/admin/skill-keys", nil, 0)
	return s.skillKeys(all, err)
}

type catalogKeyAdd struct{}

func (catalogKeyAdd) Run(s *session) error {
	var k catalog.Key
	err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/skill-keys", nil, struct{}{}, &k)
	return s.skillKeys([]catalog.Key{k}, err)
}

type catalogKeyArg struct {
	Key string `arg:"" help:"Id of the key."`
}

func (c catalogKeyArg) run(s *session, act string) error {
	var all struct {
		Items []catalog.Key `json:"items"`
	}
	err := s.client.call(s.ctx, http.MethodPost, "/v1/admin/skill-keys/"+url.PathEscape(c.Key)+act, nil, struct{}{}, &all)
	return s.skillKeys(all.Items, err)
}

type catalogKeyActivate struct{ catalogKeyArg }

func (c catalogKeyActivate) Run(s *session) error { return c.run(s, "/activate") }

type catalogKeyDrop struct{ catalogKeyArg }

func (c catalogKeyDrop) Run(s *session) error { return c.run(s, "/drop") }

func (s *session) skillKeys(all []catalog.Key, err error) error {
	return show(s, all, err, func(all []catalog.Key) error {
		t := table.New(s.stdout, "KEY", "STATE", "CREATED", "BYTES")
		for _, k := range all {
			t.Row(k.ID, k.State, k.Created.Local().Format(time.DateTime), strconv.Itoa(len(k.Public)))
		}
		return t.Flush()
	})
}
