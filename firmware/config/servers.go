package config

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"phonerack/agent/mcp/client"
)

const (
	maxServers = 8
	maxToken   = 4 << 10 // bytes
)

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// servers checks the MCP servers that skills may use, and reads their tokens.
func (c *checker) servers(s *Skills) {
	if len(s.Servers) > maxServers {
		c.fault("skills.server", "there are %d [[skills.server]]: at most %d are handled", len(s.Servers), maxServers)
		return
	}
	taken := map[string]bool{}
	for i, m := range s.Servers {
		key := fmt.Sprintf("skills.server[%d]", i)
		before := len(c.faults)
		switch {
		case !serverName.MatchString(m.Name):
			c.fault(key+".name", "skills.server has the name %q: use 1 to 40 letters, digits, '_' and '-', as the skills do", m.Name)
		case taken[m.Name]:
			c.fault(key+".name", "two [[skills.server]] have the name %s: skills could not tell them apart", m.Name)
		case (len(m.Command) > 0) == (m.URL != ""):
			c.fault(key, "the MCP server %s needs either command or url", m.Name)
		case m.URL != "":
			c.distant(key, m)
		default:
			c.program(key, m)
		}
		taken[m.Name] = true
		if len(c.faults) > before {
			continue
		}
		server := client.Server{Name: m.Name, Command: m.Command, URL: m.URL}
		for _, name := range slices.Sorted(maps.Keys(m.Env)) {
			server.Env = append(server.Env, name+"="+m.Env[name])
		}
		if m.TokenFile != "" {
			raw, err := Secret(m.TokenFile, maxToken)
			if err != nil {
				c.fault(key+".token_file", "the token of the MCP server %s: %v", m.Name, err)
				continue
			}
			if server.Token = string(bytes.TrimSpace(raw)); strings.ContainsAny(server.Token, " \t\r\n") {
				c.fault(key+".token_file", "the token of the MCP server %s has blanks or lines in it: write nothing but the token into the file", m.Name)
			}
		}
		s.Allowed = append(s.Allowed, server)
	}
}

func (c *checker) program(key string, m MCPServer) {
	if !filepath.IsAbs(m.Command[0]) {
		c.fault(key+".command", "the MCP server %s has the command %q: write the program's whole path", m.Name, m.Command[0])
	}
	if m.TokenFile != "" {
		c.fault(key+".token_file", "the MCP server %s has a token_file, which is for servers with a url: give the program its secret by env", m.Name)
	}
	for name, value := range m.Env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			c.fault(key+".env", "the MCP server %s has the variable %q: use letters, digits and '_'", m.Name, name)
		}
	}
	if slices.ContainsFunc(m.Command, func(arg string) bool { return strings.ContainsRune(arg, 0) }) {
		c.fault(key+".command", "the MCP server %s has a command with a zero character in it", m.Name)
	}
}

func (c *checker) distant(key string, m MCPServer) {
	if len(m.Env) > 0 {
		c.fault(key+".env", "the MCP server %s has env, which is for servers with a command", m.Name)
	}
	u, err := url.Parse(m.URL)
	if err == nil && (u.RawQuery != "" || u.ForceQuery) {
		c.fault(key+".url", `the MCP server %s has a url with a query, which would be in logs and in what planners read: write it as "https://host/path", and a secret into token_file`, m.Name)
		return
	}
	if err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
		c.fault(key+".url", `the MCP server %s has the url %q: write it as "https://host/path", and a secret into token_file`, m.Name, shownURL(m.URL))
		return
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.fault(key+".url", "the MCP server %s has the url %q: without TLS only this machine is allowed; write https://", m.Name, shownURL(m.URL))
	}
}
