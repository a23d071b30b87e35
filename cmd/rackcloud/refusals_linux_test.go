package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"phonerack/cloud/vault"
)

// TestBadInputToEachCommandIsOneClearSentence gives each command of the tool something wrong. What it says is one line
// without anything of the program's inside, and the exit code tells whose fault it is.
func TestBadInputToEachCommandIsOneClearSentence(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	rack := s.enrol("bench").Rack
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, open, empty := file("key", "sk-1\n", 0o600), file("open", "sk-1\n", 0o644), file("empty", "", 0o600)
	s.do("provider", "add", "demo", "--provider", "scripted")
	s.do("provider", "add", "model", "--provider", "openai", "--model", "m", "--key", key)
	const nobody = "01m8nt6d3j92pm00rcck5edwrs"
	there, large, pipe := file("there", "", 0o600), file("large", "", 0o600), filepath.Join(dir, "pipe")
	if err := errors.Join(os.Truncate(large, 100<<20), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.do("subscription", "create", "social")

	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no command", []string{}, exitUsage, "expected one of"},
		{"an unknown command", []string{"hots"}, exitUsage, "hots"},
		{"an unknown flag", []string{"host", "list", "--all"}, exitUsage, "--all"},
		{"a tenant that is no id", []string{"--tenant", "No Id", "host", "list"}, exitRefused, "tenant"},
		{"a token for all to read", []string{"--token", open, "host", "list"}, exitRefused, "chmod 600"},
		{"a token that is none", []string{"--token", key, "host", "list"}, exitRefused, "credentials"},
		{"an authority that is not there", []string{"--ca", filepath.Join(dir, "none"), "host", "list"}, exitRefused, "no such file"},
		{"an authority that is none", []string{"--ca", key, "host", "list"}, exitRefused, "holds no certificate"},

		{"host add without a file", []string{"host", "add", "--name", "x"}, exitUsage, "--out"},
		{"host add over a file", []string{"host", "add", "--out", there}, exitRefused, "nothing is overwritten"},
		{"host add into no folder", []string{"host", "add", "--out", filepath.Join(dir, "no", "file")}, exitRefused, "no such file"},
		{"host add with a name too long", []string{"host", "add", "--name", strings.Repeat("x", 300), "--out", filepath.Join(dir, "new")}, exitRefused, "name"},
		{"host show of nobody", []string{"host", "show", nobody}, exitRefused, nobody},
		{"host show without an id", []string{"host", "show"}, exitUsage, "<rack>"},
		{"host rotate of nobody", []string{"host", "rotate", nobody, "--out", filepath.Join(dir, "new")}, exitRefused, nobody},
		{"host issue of nobody", []string{"host", "issue", nobody, "--out", filepath.Join(dir, "new")}, exitRefused, nobody},
		{"host configure of nobody", []string{"host", "configure", nobody}, exitRefused, nobody},
		{"host configure with an unknown setting", []string{"host", "configure", rack, "--set", "colour=red"}, exitRefused, "colour"},
		{"host configure with a value that is none", []string{"host", "configure", rack, "--set", "heartbeat.seconds=1"}, exitRefused, "heartbeat.seconds"},
		{"host configure without a value", []string{"host", "configure", rack, "--set", "log.level"}, exitUsage, "log.level"},
		{"host configure with a setting without a name", []string{"host", "configure", rack, "--set", "=true"}, exitRefused, `"" is not one of claims.paused`},
		{"host configure with text for a number", []string{"host", "configure", rack, "--set", "heartbeat.seconds=soon"}, exitRefused, "heartbeat.seconds"},
		{"host configure with a list", []string{"host", "configure", rack, "--set", "claims.paused=[true]"}, exitRefused, "claims.paused"},
		{"host configure with a value without end", []string{"host", "configure", rack, "--set", "log.level=" + strings.Repeat("x", 100_000)}, exitRefused, "log.level"},
		{"host configure that sets and unsets", []string{"host", "configure", rack, "--set", "log.level=info", "--unset", "log.level"}, exitRefused, "log.level"},
		{"host configure of a rack that is none", []string{"host", "configure", "No Id", "--set", "log.level=info"}, exitRefused, "No Id"},
		{"host configure that sets nobody's", []string{"host", "configure", nobody, "--set", "log.level=info"}, exitRefused, nobody},
		{"host revoke of nobody", []string{"host", "revoke", nobody}, exitRefused, nobody},

		{"provider add of an unknown provider", []string{"provider", "add", "x", "--provider", "oracle"}, exitRefused, "oracle"},
		{"provider add without a model", []string{"provider", "add", "x", "--provider", "openai", "--key", key}, exitRefused, "model"},
		{"provider add without a key", []string{"provider", "add", "x", "--provider", "anthropic", "--model", "m"}, exitRefused, "key"},
		{"provider add with a key for all to read", []string{"provider", "add", "x", "--provider", "openai", "--model", "m", "--key", open}, exitRefused, "chmod 600"},
		{"provider add with an empty key", []string{"provider", "add", "x", "--provider", "openai", "--model", "m", "--key", empty}, exitRefused, "is empty"},
		{"provider add with options that are no JSON", []string{"provider", "add", "x", "--provider", "scripted", "--option", "{"}, exitUsage, "--option"},
		{"provider add with an unknown option", []string{"provider", "add", "x", "--provider", "scripted", "--option", `{"colour":1}`}, exitRefused, "colour"},
		{"provider add with a name that is taken", []string{"provider", "add", "demo", "--provider", "scripted"}, exitRefused, "demo"},
		{"provider add with no time", []string{"provider", "add", "x", "--provider", "scripted", "--timeout=-1s"}, exitRefused, "timeout"},
		{"provider add with a limit below zero", []string{"provider", "add", "x", "--provider", "scripted", "--per-minute=-1"}, exitRefused, "requests"},
		{"provider activate of nobody", []string{"provider", "activate", "nobody"}, exitRefused, "nobody"},
		{"provider rotate of nobody", []string{"provider", "rotate", "nobody", "--key", key}, exitRefused, "nobody"},
		{"provider rotate with nothing", []string{"provider", "rotate", "model", "--key", "-"}, exitRefused, "key"},
		{"provider rotate of one without a key, with nothing", []string{"provider", "rotate", "demo", "--key", "-"}, exitRefused, "no new key"},
		{"provider rotate of one without a key", []string{"provider", "rotate", "demo", "--key", key}, exitRefused, "key"},

		{"task submit without a goal", []string{"task", "submit"}, exitUsage, "--goal"},
		{"task submit with goal and file", []string{"task", "submit", "--goal", "x", "--file", key}, exitUsage, "--file"},
		{"task submit with a file that is no task", []string{"task", "submit", "--file", key}, exitRefused, "is no task"},
		{"task submit with a file that has an id", []string{"task", "submit", "--file", file("id.json", `{"task_id":"x","goal":"y"}`, 0o600)}, exitRefused, "id"},
		{"task submit with an input that is not there", []string{"task", "submit", "--goal", "x", "--input", "a=" + filepath.Join(dir, "none")}, exitRefused, "no such file"},
		{"task submit with an empty input", []string{"task", "submit", "--goal", "x", "--input", "a=" + empty}, exitRefused, "is empty: a file of a task has 1 to"},
		{"task submit with an input that is a folder", []string{"task", "submit", "--goal", "x", "--input", "a=" + dir}, exitRefused, "is no file: name a file"},
		{"task submit with an input that is a pipe", []string{"task", "submit", "--goal", "x", "--input", "a=" + pipe}, exitRefused, "is no file: name a file"},
		{"task submit with an input that is too large", []string{"task", "submit", "--goal", "x", "--input", "a=" + large}, exitRefused, "is too large: at most 8388608 bytes"},
		{"task submit with an input without a name", []string{"task", "submit", "--goal", "x", "--input", "=" + key}, exitRefused, "name"},
		{"task submit with an input without a file", []string{"task", "submit", "--goal", "x", "--input", "a"}, exitUsage, "a"},
		{"task submit with five inputs", []string{"task", "submit", "--goal", "x", "--input", "a=" + key, "--input", "b=" + key, "--input", "c=" + key, "--input", "d=" + key, "--input", "e=" + key}, exitUsage, "at most 4 files"},
		{"task submit with a task that is a folder", []string{"task", "submit", "--file", dir}, exitRefused, "is no file: name a file"},
		{"task submit with a schema that is a pipe", []string{"task", "submit", "--goal", "x", "--result-schema", pipe}, exitRefused, "is no file: name a file"},
		{"task submit with an input that has no name", []string{"task", "submit", "--goal", "x", "--input", "a b=" + key}, exitRefused, "a b"},
		{"task submit with a rack that is none", []string{"task", "submit", "--goal", "x", "--rack", "No Id"}, exitRefused, "No Id"},
		{"task submit for an unknown rack", []string{"task", "submit", "--goal", "x", "--rack", nobody}, exitRefused, "no rack " + nobody + " here"},
		{"task submit with a slot that is none", []string{"task", "submit", "--goal", "x", "--slot=-1"}, exitRefused, "slot"},
		{"task submit with a budget below zero", []string{"task", "submit", "--goal", "x", "--steps=-1"}, exitRefused, "budget"},
		{"task submit with a time that is none", []string{"task", "submit", "--goal", "x", "--deadline", "tomorrow"}, exitUsage, "tomorrow"},
		{"task submit with a deadline before its start", []string{"task", "submit", "--goal", "x", "--start", "2030-01-02T00:00:00Z", "--deadline", "2030-01-01T00:00:00Z"}, exitRefused, "deadline"},
		{"task submit with a parameter without a value", []string{"task", "submit", "--goal", "x", "--param", "name"}, exitUsage, "name"},
		{"task submit with a goal too long", []string{"task", "submit", "--goal", strings.Repeat("x", 40<<10)}, exitRefused, "goal"},
		{"task show of nobody", []string{"task", "show", nobody}, exitRefused, nobody},
		{"task cancel of nobody", []string{"task", "cancel", nobody}, exitRefused, nobody},
		{"task answer of nobody", []string{"task", "answer", nobody, "yes"}, exitRefused, nobody},
		{"task answer without an answer", []string{"task", "answer", nobody}, exitUsage, "<text>"},
		{"task answer with nothing", []string{"task", "answer", nobody, ""}, exitUsage, "<text> is empty"},
		{"task requeue of nobody", []string{"task", "requeue", nobody}, exitRefused, nobody},
		{"task list of an unknown state", []string{"task", "list", "--state", "asleep"}, exitUsage, "asleep"},
		{"task list of less than nothing", []string{"task", "list", "--limit=-1"}, exitUsage, "--limit"},

		{"skill publish of nothing", []string{"skill", "publish", filepath.Join(dir, "none"), "--subscription", "social"}, exitRefused, "cannot be read: no such file"},
		{"skill publish of an empty folder", []string{"skill", "publish", t.TempDir(), "--subscription", "social"}, exitUsage, "there is no .yaml, .yml, .json or .md file below"},
		{"skill publish without a subscription", []string{"skill", "publish", key}, exitUsage, "--subscription"},
		{"skill show of nobody", []string{"skill", "show", "nobody"}, exitRefused, "nobody"},
		{"skill show of a path", []string{"skill", "show", "../hosts"}, exitRefused, "../hosts"},
		{"skill remove of nobody", []string{"skill", "remove", "nobody"}, exitRefused, "nobody"},
		{"skill list of no subscription", []string{"skill", "list", "--subscription", "No Id"}, exitRefused, "No Id"},
		{"subscription create that is there", []string{"subscription", "create", "social"}, exitRefused, "social"},
		{"subscription create with a bad id", []string{"subscription", "create", "No Id"}, exitRefused, "No Id"},
		{"subscription create with a name without end", []string{"subscription", "create", "long", "--name", strings.Repeat("x", 10_000)}, exitRefused, "name"},
		{"subscription show of nobody", []string{"subscription", "show", "nobody"}, exitRefused, "nobody"},
		{"subscription grant of nobody", []string{"subscription", "grant", "nobody", "--rack", rack}, exitRefused, "no subscription nobody here"},
		{"subscription grant to an unknown rack", []string{"subscription", "grant", "social", "--rack", nobody}, exitRefused, "no rack " + nobody + " here"},
		{"subscription grant to a rack that is none", []string{"subscription", "grant", "social", "--rack", "No Id"}, exitRefused, "No Id"},
		{"subscription grant to an agent that is none", []string{"subscription", "grant", "social", "--agent", "No Id"}, exitRefused, "No Id"},
		{"subscription grant to an agent that nobody is", []string{"subscription", "grant", "social", "--agent", "tasks"}, exitRefused, "task, person, mcp"},
		{"subscription grant to a token without a name", []string{"subscription", "grant", "social", "--agent", "mcp-"}, exitRefused, "mcp-NAME"},
		{"subscription grant to a rack without a name", []string{"subscription", "grant", "social", "--rack", ""}, exitUsage, "--rack"},
		{"subscription grant to an agent without a name", []string{"subscription", "grant", "social", "--rack", rack, "--agent="}, exitUsage, "--agent"},
		{"task for a rack without a name", []string{"task", "submit", "--goal", "wait", "--rack", ""}, exitUsage, "--rack"},
		{"task with a skill without a name", []string{"task", "submit", "--goal", "wait", "--skill", ""}, exitUsage, "--skill"},
		{"host show of a rack without a name", []string{"host", "show", ""}, exitUsage, "<rack>"},
		{"subscription revoke of what was not granted", []string{"subscription", "revoke", "social", "--rack", rack}, exitRefused, "social"},
		{"subscription open of nobody", []string{"subscription", "open", "nobody"}, exitRefused, "nobody"},
		{"subscription close of nobody", []string{"subscription", "close", "nobody"}, exitRefused, "nobody"},
		{"catalog show of nobody", []string{"catalog", "show", nobody}, exitRefused, nobody},
		{"catalog key activate of nobody", []string{"catalog", "key", "activate", "nobody"}, exitRefused, "nobody"},
		{"catalog key drop of nobody", []string{"catalog", "key", "drop", "nobody"}, exitRefused, "nobody"},

		{"an unknown order", []string{"command", "send", "dance", rack}, exitRefused, "dance"},
		{"an order for nobody", []string{"command", "send", "ping", nobody}, exitRefused, nobody},
		{"an order for a rack that is none", []string{"command", "send", "ping", "No Id"}, exitRefused, "No Id"},
		{"a screenshot of the rack itself", []string{"command", "send", "screenshot", rack}, exitRefused, "slot"},
		{"an order for a slot that is none", []string{"command", "send", "ping", rack, "--slot=-1"}, exitRefused, "slot"},
		{"an order with arguments that are no JSON", []string{"command", "send", "identify", rack, "--args", "{"}, exitUsage, "--args"},
		{"an order with arguments that it does not take", []string{"command", "send", "ping", rack, "--args", `{"loud":true}`}, exitRefused, "no arguments"},
		{"an order that waits too long", []string{"command", "send", "ping", rack, "--expires", "200h"}, exitRefused, "expiry"},
		{"an order that waits less than nothing", []string{"command", "send", "ping", rack, "--expires=-1s"}, exitUsage, "--expires"},
		{"an order with a picture that it has not", []string{"command", "send", "ping", rack, "--out", filepath.Join(dir, "new")}, exitUsage, "--out"},
		{"a picture over a file", []string{"command", "send", "screenshot", rack, "--slot", "1", "--out", there}, exitRefused, "nothing is overwritten"},
		{"command show of nobody", []string{"command", "show", nobody}, exitRefused, nobody},
		{"command list of less than nothing", []string{"command", "list", "--limit=-1"}, exitUsage, "--limit"},

		{"decisions of nobody", []string{"decisions", nobody}, exitRefused, nobody},
		{"decisions of no attempt", []string{"decisions", nobody, "--attempt=-1"}, exitUsage, "--attempt"},
		{"events of less than nothing", []string{"events", "--limit=-1"}, exitUsage, "--limit"},
		{"audit of less than nothing", []string{"audit", "--limit=-1"}, exitUsage, "--limit"},
		{"usage from a day that is none", []string{"usage", "--from", "yesterday"}, exitRefused, "yesterday"},
		{"key add to a file that is none", []string{"key", "add", filepath.Join(dir, "keek")}, exitRefused, "--new"},
		{"key add to a file in no folder", []string{"key", "add", filepath.Join(dir, "no", "kek")}, exitRefused, "no such file"},
		{"a new key file in no folder", []string{"key", "add", "--new", filepath.Join(dir, "no", "kek")}, exitRefused, "no such file"},
		{"a new key file over a file", []string{"key", "add", "--new", key}, exitRefused, "nothing is overwritten"},
		{"key add to a file of another kind", []string{"key", "add", key}, exitRefused, key},
		{"token without a file", []string{"token", "--state", dir}, exitUsage, "--out"},
		{"token over a file", []string{"token", "--state", dir, "--out", there}, exitRefused, "nothing is overwritten"},
		{"backup over a file", []string{"backup", there}, exitRefused, there},
		{"backup without a path", []string{"backup"}, exitUsage, "<path>"},
		{"serve with an unknown broker", []string{"serve", "--broker", "pigeon"}, exitUsage, "--broker"},
		{"serve with a broker that nobody finds", []string{"serve", "--state", filepath.Join(dir, "s2"), "--broker", "nats", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, exitUsage, "--broker-address"},
		{"serve without room for anything", []string{"serve", "--state", key}, exitRefused, key},
		{"serve with two databases", []string{"serve", "--state", dir, "--dsn", "sqlite:x", "--dsn-file", key}, exitUsage, "exclude"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"--admin", s.admin}, c.args...), strings.NewReader(""), &out, &errs)
			said := strings.TrimSuffix(errs.String(), "\n")
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d where %d is due, and %q is not said: %s", code, c.code, c.says, said)
			}
			if strings.Contains(said, "\n") || out.Len() > 0 || strings.Contains(said, "%!") {
				t.Errorf("it is not one sentence: %s%s", out.String(), said)
			}
			if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
				t.Error("a file is left")
				os.Remove(filepath.Join(dir, "new"))
			}
		})
	}
}

// TestAKeyFileIsMadeIfThatIsAskedFor, and else only added to.
func TestAKeyFileIsMadeIfThatIsAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kek")
	var ids []string
	for _, args := range [][]string{{"key", "add", "--new", path}, {"key", "add", path}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%v: exit code %d, %s", args, code, errs.String())
		}
		ids = append(ids, strings.TrimSpace(out.String()))
	}
	if v, err := vault.Open(path); err != nil || v.Writing() != ids[1] || ids[0] == ids[1] {
		t.Errorf("keys %q, %v", ids, err)
	}
}

// TestAFolderOfSkillsIsHostile: each file of a folder that cannot be published is told with its reason, in a sentence, and
// nothing that it holds takes the place of anything.
func TestAFolderOfSkillsIsHostile(t *testing.T) {
	s := serve(t, t.TempDir())
	s.do("subscription", "create", "social")
	dir, other := t.TempDir(), t.TempDir()
	const good = "---\nid: ID\nname: Good\ndescription: d\nversion: 1\n---\ntext\n"
	with := func(id string) string { return strings.Replace(good, "ID", id, 1) }
	draft(t, dir, "a/good.md", with("good"))
	draft(t, dir, "b/one.md", with("same"))
	draft(t, dir, "b/two.md", strings.Replace(with("same"), "version: 1", "version: 2", 1))
	draft(t, dir, "bytes.md", with("bytes")+"\xff\xfe")
	draft(t, dir, "hidden.md", with("hidden")+"a\u200bb")
	draft(t, dir, "no-skill.json", "{")
	secret := draft(t, other, "secret.md", with("secret"))
	if err := errors.Join(os.Symlink(secret, filepath.Join(dir, "link.md")), os.Symlink(other, filepath.Join(dir, "folder.md")), os.Symlink("nowhere", filepath.Join(dir, "none.yaml")),
		syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600), os.Truncate(draft(t, dir, "zz.md", ""), 100<<20), os.Symlink(dir, filepath.Join(dir, ".loop"))); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "skills")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	text, code := s.try("", "skill", "publish", link, "--subscription", "social")
	if code != exitRefused {
		t.Fatalf("%d: %s", code, text)
	}
	says := map[string]string{
		"one.md": "the skill same is in " + filepath.Join(dir, "b", "two.md") + " too", "two.md": "the skill same is in " + filepath.Join(dir, "b", "one.md") + " too",
		"bytes.md": "it is not UTF-8 text", "hidden.md": "U+200B", "no-skill.json": "no-skill.json line 1", "link.md": "it is a link", "folder.md": "it is a link", "none.yaml": "it is a link",
		"pipe.yaml": "is no file", "zz.md": "is too large: at most 524288 bytes",
	}
	for _, p := range decode[[]published](t, text) {
		want, refused := says[filepath.Base(p.File)]
		delete(says, filepath.Base(p.File))
		if !refused {
			if p.Error != nil || p.Skill.ID != "good" {
				t.Errorf("%+v", p)
			}
			continue
		}
		if p.Error == nil {
			t.Errorf("%s is published", p.File)
			continue
		}
		if got := p.Error.Sentence("en"); !strings.Contains(got, want) || strings.Contains(got, "\n") || p.Skill != nil {
			t.Errorf("%s: %s", p.File, got)
		}
	}
	if len(says) > 0 {
		t.Errorf("nothing is said of %v", says)
	}
	if got := s.do("skill", "list"); strings.Count(got, `"id"`) != 1 {
		t.Errorf("%s", got)
	}
}
