package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/agent/skill/registry"
	"phonerack/cmd/internal/table"
	"phonerack/firmware/action"
	"phonerack/sync/catalog"
)

type skillCommands struct {
	Format string `help:"text, or json for programs: {\"data\": ...}." enum:"text,json" default:"text"`

	List     skillList     `cmd:"" help:"List skills: registered ones, those of the catalog, Agent Skills."`
	Search   skillSearch   `cmd:"" help:"Find skills by words, in any language."`
	Show     skillShow     `cmd:"" help:"Show a skill."`
	Add      skillAdd      `cmd:"" help:"Register a skill."`
	Update   skillUpdate   `cmd:"" help:"Replace a registered skill."`
	Remove   skillRemove   `cmd:"" help:"Remove a registered skill."`
	Tools    skillTools    `cmd:"" help:"List the tools of a skill, or all that exist, with their sources."`
	Validate skillValidate `cmd:"" help:"Check that skills can be used, or a file before it is registered."`
	Catalog  skillCatalog  `cmd:"" help:"Show how the copy of the subscription does: version, age, and why it was not brought up to date."`
}

// skillCall asks for an action. Its result goes out as {"data": ...}, or through show.
func skillCall[R any](s *session, name string, args any, show func(R) error) error {
	var result R
	if err := s.client.Call(s.ctx, name, args, &result); err != nil {
		return err
	}
	if s.json {
		return s.print(map[string]any{"data": result})
	}
	return show(result)
}

type skillList struct {
	Namespace string `blank:"" help:"Only skills of this namespace; catalog and agent_skills are two." placeholder:"NAME"`
}

func (c skillList) Run(s *session) error {
	all := action.SkillList{Skills: []action.SkillRow{}}
	for after := ""; ; {
		var page action.SkillList
		if err := s.client.Call(s.ctx, "skill_list", action.SkillListArgs{Namespace: c.Namespace, After: after}, &page); err != nil {
			return err
		}
		all.Skills, all.Summary = append(all.Skills, page.Skills...), page.Summary
		if after = page.Next; after == "" {
			break
		}
	}
	if s.json {
		return s.print(map[string]any{"data": all})
	}
	return s.showSkills(all)
}

type skillCatalog struct{}

func (skillCatalog) Run(s *session) error {
	return skillCall(s, "skill_catalog", nil, func(c catalog.Status) error {
		t := table.New(s.stdout, "WHAT", "IS")
		if !c.Synced {
			t.Row("catalog", "none yet")
		} else {
			t.Row("version", fmt.Sprintf("%d of epoch %d, of %s", c.Version, c.Epoch, c.Issued.Local().Format(time.DateTime)))
			t.Row("skills", strconv.Itoa(c.Skills))
		}
		if !c.StaleSince.IsZero() {
			t.Row("stale since", c.StaleSince.Local().Format(time.DateTime)+": what it says may be out of date")
		}
		for _, u := range c.Subscriptions {
			t.Row("subscription", strings.TrimSpace(fmt.Sprintf("%s %s %s", u.ID, u.State, strings.Join(u.Agents, " "))))
		}
		if c.Hidden > 0 {
			t.Row("hidden until the next whole list", strconv.Itoa(c.Hidden))
		}
		if !c.LastSynced.IsZero() {
			t.Row("up to date at", c.LastSynced.Local().Format(time.DateTime))
		}
		if c.Problem != "" {
			t.Row("last try", fmt.Sprintf("%s: %s", c.LastTried.Local().Format(time.DateTime), c.Problem))
		}
		return t.Flush()
	})
}

type skillSearch struct {
	Query []string `arg:"" help:"Words."`
	Limit int      `help:"At most this many." default:"10"`
}

func (c skillSearch) Run(s *session) error {
	return skillCall(s, "skill_search", action.SkillSearchArgs{Query: strings.Join(c.Query, " "), Limit: c.Limit}, s.showSkills)
}

func (s *session) showSkills(list action.SkillList) error {
	t := table.New(s.stdout, "SKILL", "SOURCE", "KIND", "VERSION", "SUBSCRIPTION", "UPDATED", "MARKS", "DESCRIPTION")
	for _, k := range list.Skills {
		t.Row(k.Name, string(k.Source), string(k.Kind), k.Version, k.Subscription, at(k.UpdatedAt), marks(k.Stale, k.Unavailable), shortened(strings.TrimSpace(k.Title+" "+k.Description)))
	}
	if err := t.Flush(); err != nil || list.Summary == nil {
		return err
	}
	sum := list.Summary
	_, err := fmt.Fprintf(s.stdout, "%d skills: %d registered, %d of the catalog, %d Agent Skills; %d cannot be used now\n", sum.Total, sum.Registry, sum.Catalog, sum.AgentSkills, sum.Unavailable)
	if err == nil && !sum.StaleSince.IsZero() {
		_, err = fmt.Fprintf(s.stdout, "the catalog may be out of date since %s\n", sum.StaleSince.Local().Format(time.DateTime))
	}
	return err
}

// marks are what a person should know of a skill before it is used.
func marks(stale bool, unavailable string) string {
	var words []string
	if stale {
		words = append(words, "stale")
	}
	if unavailable != "" {
		words = append(words, "unavailable")
	}
	return strings.Join(words, ",")
}

// shortened keeps a row on a line.
func shortened(text string) string {
	if r := []rune(text); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return text
}

type skillShow struct {
	Name string `arg:"" help:"Name of the skill: namespace/short_name, catalog/ID or agent_skills/NAME."`
}

func (c skillShow) Run(s *session) error {
	return skillCall(s, "skill_show", action.SkillArgs{Name: c.Name}, s.showSkill)
}

func (s *session) showSkill(d action.SkillDetail) error {
	for _, line := range []struct{ what, is string }{
		{"skill", d.Name},
		{"source", string(d.Source)},
		{"kind", string(d.Kind)},
		{"title", d.Title},
		{"description", d.Description},
		{"version", d.Version},
		{"subscription", d.Subscription},
		{"tags", strings.Join(d.Tags, ", ")},
		{"aliases", strings.Join(d.Aliases, ", ")},
		{"folder", d.Path},
		{"created", at(d.CreatedAt)},
		{"updated", at(d.UpdatedAt)},
		{"marks", marks(d.Stale, d.Unavailable)},
		{"unavailable", d.Unavailable},
	} {
		if line.is != "" {
			fmt.Fprintf(s.stdout, "%-12s  %s\n", line.what, table.Plain(line.is))
		}
	}
	switch d.Kind {
	case model.Knowledge:
		_, err := fmt.Fprintf(s.stdout, "\n%s\n", lines(d.Content))
		return err
	case model.FlowTemplate:
		return s.showFlow(d)
	}
	t := table.New(s.stdout, "#", "TYPE", "NAME", "REMARK")
	for i, it := range d.Items {
		t.Row(strconv.Itoa(i), string(it.Type()), it.Name(), says(it))
	}
	return t.Flush()
}

func at(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// lines frees each line of a text from what would act on a terminal.
func lines(text string) string {
	all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range all {
		all[i] = table.Plain(strings.ReplaceAll(line, "\t", "    "))
	}
	return strings.Join(all, "\n")
}

func (s *session) showFlow(d action.SkillDetail) error {
	t := table.New(s.stdout, "PARAMETER", "TYPE", "NEEDED", "DEFAULT", "DESCRIPTION")
	for _, p := range d.Parameters {
		t.Row(p.Name, string(p.Type), strconv.FormatBool(p.Required), string(p.Default), shortened(p.Description))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = table.New(s.stdout, "STEP", "TOOL", "ARGUMENTS")
	for i, step := range d.Steps {
		t.Row(strconv.Itoa(i+1), step.Tool, string(step.ArgsTemplate))
	}
	return t.Flush()
}

// says is what an item says besides its name.
func says(it model.Item) string {
	switch it.Type() {
	case model.InlineToolItem:
		return shortened(it.InlineTool.Description)
	case model.MCPSourceItem:
		return string(it.MCPSource.Transport) + " " + it.MCPSource.Command + it.MCPSource.URL
	case model.ToolRefItem:
		return overrides(it.ToolRef.Overrides)
	case model.IncludeItem:
		return overrides(it.Include.Overrides)
	}
	return ""
}

func overrides(o model.Overrides) string {
	if len(o) == 0 {
		return ""
	}
	raw, _ := json.Marshal(o) // JSON already
	return shortened(string(raw))
}

// yamlFile is a file with a skill; - is standard input.
type yamlFile string

func (f yamlFile) read(s *session) (action.SkillYAML, error) {
	in, name := s.stdin, "standard input"
	if f != "-" {
		file, err := os.Open(string(f))
		if err != nil {
			return action.SkillYAML{}, err
		}
		defer file.Close()
		in, name = file, filepath.Base(string(f))
	}
	text, err := io.ReadAll(io.LimitReader(in, model.MaxYAMLBytes+1)) // one too many is rackd's to refuse
	return action.SkillYAML{File: name, YAML: string(text)}, err
}

type skillAdd struct {
	File yamlFile `arg:"" help:"YAML file of the skill; - for standard input."`
}

func (c skillAdd) Run(s *session) error { return s.putSkill("skill_add", c.File) }

type skillUpdate struct {
	File yamlFile `arg:"" help:"YAML file of the skill; - for standard input."`
}

func (c skillUpdate) Run(s *session) error {
	return s.putSkill("skill_update", c.File)
}

func (s *session) putSkill(name string, file yamlFile) error {
	yaml, err := file.read(s)
	if err != nil {
		return err
	}
	return skillCall(s, name, yaml, s.showSkill)
}

type skillRemove struct {
	Name string `arg:"" help:"Name of the skill."`
}

func (c skillRemove) Run(s *session) error {
	return skillCall(s, "skill_remove", action.SkillArgs{Name: c.Name}, func(r action.SkillRemoved) error {
		fmt.Fprintf(s.stdout, "removed %s\n", table.Plain(r.Name))
		if len(r.Includers) > 0 {
			fmt.Fprintf(s.stderr, "Warning: these skills include it and cannot be used any more: %s\n", table.Plain(strings.Join(r.Includers, ", ")))
		}
		return nil
	})
}

type skillTools struct {
	Name    string `arg:"" optional:"" help:"Name of the skill; every tool that exists without it."`
	Refresh bool   `help:"Look at the Agent Skills folders first."`
}

func (c skillTools) Run(s *session) error {
	if c.Refresh {
		var r action.SkillRefresh
		if err := s.client.Call(s.ctx, "skill_refresh", struct{}{}, &r); err != nil {
			return err
		}
		s.reportRefresh(r)
	}
	return skillCall(s, "skill_tools", action.SkillToolsArgs{Name: c.Name}, s.showTools)
}

// reportRefresh tells on standard error what was left out and why.
func (s *session) reportRefresh(r action.SkillRefresh) {
	fmt.Fprintf(s.stderr, "Agent Skills: %d found, %d conflicts, %d left out\n", len(r.Discovered), len(r.Conflicts), len(r.Skipped))
	for _, c := range r.Conflicts {
		fmt.Fprintf(s.stderr, "conflict: %s\n", table.Plain(c.Error()))
	}
	for _, k := range r.Skipped {
		fmt.Fprintf(s.stderr, "left out: %s\n", table.Plain(k.Error()))
	}
	for _, k := range r.Findings {
		fmt.Fprintf(s.stderr, "warning: %s: %s\n", table.Plain(k.Path), table.Plain(k.Error()))
	}
}

func (s *session) showTools(l registry.Listing) error {
	t := table.New(s.stdout, "TOOL", "SOURCE", "FROM", "MAY", "DESCRIPTION")
	for _, row := range l.Tools {
		from := ""
		if row.FromSkill != nil {
			from = *row.FromSkill
		}
		t.Row(row.Name, string(row.Source), from, may(row), shortened(row.Description))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	sum := l.Summary
	_, err := fmt.Fprintf(s.stdout, "%d tools; inline: %d read-only, %d write, %d checkpointable, side effects: %t; %d MCP servers, %d Agent Skills\n",
		sum.TotalTools, sum.ReadOnlyTools, sum.WriteTools, sum.CheckpointableTools, sum.HasSideEffects, sum.MCPSources, sum.AgentSkillSources)
	return err
}

func may(r registry.Row) string {
	var words []string
	if r.ReadOnly {
		words = append(words, "read")
	}
	if r.Writes {
		words = append(words, "write")
	}
	if r.Checkpoint {
		words = append(words, "checkpoint")
	}
	return strings.Join(words, ",")
}

type skillValidate struct {
	Names []string `arg:"" help:"Names of skills, or one YAML file; - for standard input."`
}

func (c skillValidate) Run(s *session) error {
	args := action.SkillValidateArgs{Skills: c.Names}
	for _, name := range c.Names {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && strings.HasSuffix(name, ".md") {
			return fmt.Errorf("%s is a file of text, where names of skills or one YAML file of the registry are checked: rackctl skill tools --refresh says what is wrong with Agent Skills, rackcloud skill publish with skills of the catalog", name)
		}
	}
	if name := c.Names[0]; len(c.Names) == 1 && (name == "-" || strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) {
		yaml, err := yamlFile(name).read(s)
		if err != nil {
			return err
		}
		args = action.SkillValidateArgs{File: yaml.File, YAML: yaml.YAML}
	}
	var v action.SkillValidation
	if err := s.client.Call(s.ctx, "skill_validate", args, &v); err != nil {
		return err
	}
	var err error
	if !v.Valid {
		err = exitCode(exitRefused)
	}
	if s.json {
		return errors.Join(s.print(map[string]any{"data": v}), err)
	}
	for _, e := range v.Errors {
		fmt.Fprintln(s.stdout, table.Plain(e))
	}
	for _, e := range v.NotExecutable {
		fmt.Fprintln(s.stdout, table.Plain("tasks do without: "+e))
	}
	if v.Valid {
		fmt.Fprintln(s.stdout, "ok")
	}
	return err
}
