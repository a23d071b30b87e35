package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"phonerack/agent/mcp"
	"phonerack/agent/planner/script"
	"phonerack/agent/runner"
	"phonerack/agent/skill/folder"
	"phonerack/agent/skill/registry"
	"phonerack/firmware/factory"
	"phonerack/hal/board"
	"phonerack/sync/wire"
)

const (
	maxSlot   = 999
	maxSocket = 107 // bytes in sun_path without its final zero, unix(7)

	shortestHold = time.Second
	longestHold  = 24 * time.Hour

	shortestPoll = 10 * time.Second
	longestPoll  = 24 * time.Hour

	shortestWatch = 5 * time.Second
	longestWatch  = 10 * time.Minute
)

var validID = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// A checker collects the faults of a configuration.
type checker struct {
	file   string
	at     map[string]board.Position
	faults []error
}

// fault reports at the key, or at the nearest table above it that is in the file.
func (c *checker) fault(key, format string, args ...any) {
	f := board.Fault{File: c.file, Text: fmt.Sprintf(format, args...)}
	for k := key; k != ""; {
		if p, ok := c.at[k]; ok {
			f.Line, f.Column = p.Line, p.Column
			break
		}
		k = k[:max(0, strings.LastIndexByte(k, '.'))]
	}
	c.faults = append(c.faults, f)
}

func (c *checker) all(conf *Config) {
	c.rack(&conf.Rack)
	c.usb(conf)
	c.cloud(conf)
	c.planner(conf)
	if f := conf.Helpers.Folder; f != "" {
		if info, err := os.Stat(f); err != nil || !info.IsDir() {
			c.fault("helpers.folder", "helpers.folder is %s, which is no folder: fetch the helper apps with make helpers and name their folder, or leave the key out", f)
		}
	}
	c.skills(&conf.Skills)
	c.platform(conf)
	c.streams(conf)
	if conf.Log.Format != "text" && conf.Log.Format != "json" {
		c.fault("log.format", `log.format is %q: write "text" or "json"`, conf.Log.Format)
	}
	c.control(conf)
	c.mcp(conf)
	c.page(&conf.Page)
	c.metrics(&conf.Metrics)
	c.mdns(conf)
	c.health(conf)
}

// health says which thresholds cannot be used, and whether the watchdog is one.
func (c *checker) health(conf *Config) {
	for _, f := range conf.Health.Faults() {
		c.fault("health."+f.Key, "health.%s: %s", f.Key, f.Text)
	}
	if d := time.Duration(conf.Watchdog.Timeout); d < shortestWatch || d > longestWatch {
		c.fault("watchdog.timeout", "watchdog.timeout is %v: write %v to %v", d, shortestWatch, longestWatch)
	}
}

func (c *checker) skills(s *Skills) {
	if m := s.AgentSkillsMode; m != folder.Lenient && m != folder.Strict {
		c.fault("skills.agent_skills_mode", `skills.agent_skills_mode is %q: write "lenient" or "strict"`, m)
	}
	switch s.AgentSkillsConflicts {
	case registry.SkipConflicts, registry.RefuseConflicts, registry.ReplaceTools:
	default:
		c.fault("skills.agent_skills_conflicts", `skills.agent_skills_conflicts is %q: write "skip", "error" or "replace"`, s.AgentSkillsConflicts)
	}
	if d := time.Duration(s.PollInterval); d < shortestPoll || d > longestPoll {
		c.fault("skills.poll_interval", "skills.poll_interval is %v: write %v to %v", d, shortestPoll, longestPoll)
	}
	c.servers(s)
}

func (c *checker) rack(r *Rack) {
	switch {
	case r.ID == "":
		c.fault("rack.id", `rack.id is missing: give this rack a name, such as id = "rack-1"`)
	case !validID.MatchString(r.ID):
		c.fault("rack.id", "rack.id is %q: use 1 to 63 of the characters a-z, 0-9 and -", r.ID)
	}
	c.folder("rack.state", r.State)
	c.folder("rack.runtime", r.Runtime)
	if r.State == r.Runtime && r.State != "" {
		c.fault("rack.runtime", "rack.runtime is the same folder as rack.state: use two, because the runtime folder is lost at a restart")
	}
}

func (c *checker) folder(key, path string) {
	if path == "" || path == "/" {
		c.fault(key, "%s is %q: name a folder of its own, rackd writes into it", key, path)
		return
	}
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		c.fault(key, "%s is %s, which is no folder: name a folder, rackd makes it if it is missing", key, path)
	}
}

func (c *checker) usb(conf *Config) {
	if !conf.USB.Enabled {
		if len(conf.Streams) == 0 {
			c.fault("usb.enabled", "usb.enabled is false and there is no [[stream]]: the rack has no slot; enable USB or add a stream")
		}
		return
	}
	if conf.Rack.Board == "" {
		c.fault("rack.board", "rack.board is missing: name the board file that says which USB port is which slot, or set usb.enabled = false")
		return
	}
	loaded, err := board.Load(conf.Rack.Board)
	if errors.Is(err, fs.ErrNotExist) {
		c.fault("rack.board", "rack.board is %s, which does not exist: correct the path", conf.Rack.Board)
		return
	}
	if err != nil {
		c.faults = append(c.faults, err) // faults of the board file name their own places
	}
	conf.Board = loaded
}

func (c *checker) planner(conf *Config) {
	p := conf.Planner
	switch p.Pictures {
	case runner.PicturesNeeded, runner.PicturesAlways, runner.PicturesMarked:
	default:
		c.fault("planner.pictures", `planner.pictures is %q: write "needed", "always" or "marked"`, p.Pictures)
	}
	switch p.Transport {
	case Script:
	case ByCloud:
		if conf.Cloud.Identity == "" && !conf.Unenrolled {
			c.fault("planner.transport", `planner.transport is %q, but cloud.identity is missing: name the identity that rackcloud host add gave`, p.Transport)
		}
		return
	case Direct:
		c.direct(&conf.Planner.Direct)
		return
	default:
		c.fault("planner.transport", `planner.transport is %q: write "script", "cloud" or "direct"`, p.Transport)
		return
	}
	var err error
	if p.Rules == "" {
		conf.Scripted, err = script.Shipped()
	} else {
		conf.Scripted, err = script.Load(p.Rules)
	}
	if err == nil {
		return
	}
	if fault, ok := errors.AsType[*script.LoadError](err); ok {
		file := p.Rules // a fault names the file without its folder
		if filepath.Base(file) != fault.File {
			file = filepath.Join(file, fault.File)
		}
		c.faults = append(c.faults, board.Fault{File: file, Line: fault.Line, Column: 1, Text: fault.Reason})
		return
	}
	c.fault("planner.rules", "planner.rules is %s, which cannot be read (%v): correct the path", p.Rules, unwrap(err))
}

// direct checks what a provider is asked with, its key too.
func (c *checker) direct(p *Provider) {
	if p.KeyFile != "" {
		if _, err := Secret(p.KeyFile, maxKeyFile); err != nil {
			c.fault("planner.direct.key_file", "planner.direct.key_file: %v", err)
			return
		}
	}
	if _, err := p.Config(); err != nil {
		c.fault("planner.direct", "planner.direct: %v", err)
	}
}

// cloud reads the identity, because without it nothing of the cloud works.
func (c *checker) cloud(conf *Config) {
	if conf.Cloud.Identity == "" {
		for key, value := range map[string]string{"cloud.broker": conf.Cloud.Broker, "cloud.proxy": conf.Cloud.Proxy} {
			if value != "" {
				c.fault(key, "%s is there, but cloud.identity is missing: name the identity that rackcloud host add gave", key)
			}
		}
		return
	}
	raw, err := Secret(conf.Cloud.Identity, wire.MaxBundle)
	if errors.Is(err, fs.ErrNotExist) && factory.Unenrolled(conf.Rack.State) {
		conf.Cloud, conf.Unenrolled = Cloud{}, true
		return
	}
	if err == nil {
		conf.Bundle, err = wire.ParseBundle(raw)
	}
	if _, gone := errors.AsType[absent](err); gone {
		c.fault("cloud.identity", "cloud.identity is %s, which does not exist: put the file there that rackcloud host add wrote, or correct the path", conf.Cloud.Identity)
		return
	}
	if err != nil {
		c.fault("cloud.identity", "cloud.identity: %v: use the file as rackcloud host add wrote it", err)
		return
	}
	if conf.Cloud.Broker == "" {
		conf.Cloud.Broker = conf.Bundle.Broker
	}
	if conf.Cloud.Broker == "" {
		c.fault("cloud.broker", `cloud.broker is missing and the identity names none: write it as "ssl://cloud.example:8883"`)
	}
}

func (c *checker) streams(conf *Config) {
	taken := map[int]bool{}
	for i, s := range conf.Streams {
		key := fmt.Sprintf("stream[%d]", i)
		switch {
		case s.Slot < 1 || s.Slot > maxSlot:
			c.fault(key+".slot", "the stream has slot %d: give it a number from 1 to %d", s.Slot, maxSlot)
		case taken[s.Slot]:
			c.fault(key+".slot", "slot %d is given to two streams: a slot holds one phone", s.Slot)
		case conf.Board != nil:
			if b, ok := conf.Board.Slot(s.Slot); ok {
				c.fault(key+".slot", "slot %d is USB port %s on the board file: give the stream another number", s.Slot, b.Path)
			}
		}
		taken[s.Slot] = true
		if reason := addressFault(s); reason != "" {
			c.fault(key+".address", "the stream of slot %d has the address %q: %s", s.Slot, s.Address, reason)
		}
	}
}

// mcp reads the tokens, because without them nobody can be served over HTTP.
func (c *checker) mcp(conf *Config) {
	m := conf.MCP
	for _, p := range m.Permissions {
		if !slices.Contains(mcp.Permissions(), p) {
			c.fault("mcp.permissions", "mcp.permissions has %q: choose from %s", p, strings.Join(mcp.Permissions(), ", "))
		}
	}
	switch {
	case m.Listen == "" && m.TokenFile == "":
		return
	case m.Listen == "":
		c.fault("mcp.token_file", `mcp.token_file is there, but mcp.listen is missing: write it as "127.0.0.1:8472", or leave both out`)
		return
	case m.TokenFile == "":
		c.fault("mcp.listen", "mcp.listen is there, but mcp.token_file is missing: name a file of mode 0600 with a token, or leave both out")
		return
	}
	if reason := addressFault(Stream{Address: "tcp:" + m.Listen}); reason != "" {
		c.fault("mcp.listen", `mcp.listen is %q: write a loopback address and a port, such as "127.0.0.1:8472"; for other machines use ssh -L`, m.Listen)
	}
	raw, err := Secret(m.TokenFile, mcp.MaxTokenFile)
	if err == nil {
		conf.MCPTokens, err = mcp.ParseTokens(raw)
	}
	if err != nil {
		c.fault("mcp.token_file", "mcp.token_file: %v", err)
	}
}

// addressFault keeps streams on this machine: they carry no authentication of the other end.
func addressFault(s Stream) string {
	const form = `write "unix:/path/to/socket" or "tcp:127.0.0.1:port"`
	network, address := s.Network()
	switch network {
	case "unix":
		if address == "" || len(address) > maxSocket {
			return form
		}
		return ""
	case "tcp":
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return form
		}
		if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
			return "only loopback addresses are allowed; " + form
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "the port must be from 1 to 65535"
		}
		return ""
	}
	return form
}

func (c *checker) control(conf *Config) {
	if rel, err := filepath.Rel(conf.Rack.Runtime, conf.Control.Socket); err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		c.fault("control.socket", "control.socket is %s, outside of rack.runtime %s: rackd writes nowhere else", conf.Control.Socket, conf.Rack.Runtime)
	}
	if len(conf.Control.Socket) > maxSocket {
		c.fault("control.socket", "control.socket has %d bytes, and the kernel allows %d: use a shorter path", len(conf.Control.Socket), maxSocket)
	}
	if g := conf.Control.Group; g != "" {
		if _, err := user.LookupGroup(g); err != nil {
			c.fault("control.group", "control.group is %q, which is no group on this machine: create it, or leave the key out", g)
		}
	}
	if d := time.Duration(conf.Control.MaxHold); d < shortestHold || d > longestHold {
		c.fault("control.max_hold", "control.max_hold is %s: choose from %s to %s", d, shortestHold, longestHold)
	}
}

// unwrap drops the path from a path error: the sentence has it already.
func unwrap(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
