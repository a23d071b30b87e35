package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// npm are the settings that npm would use.
type npm struct {
	registry string   // with its last slash
	proxy    *url.URL // nil: as the environment says
}

// settings reads them: the environment first, then .npmrc at home.
func settings(home string, env func(string) string) (npm, error) {
	file, err := npmrc(filepath.Join(home, ".npmrc"))
	if err != nil {
		return npm{}, err
	}
	of := func(names ...string) string {
		for _, name := range names {
			for _, v := range []string{
				env("npm_config_" + strings.ReplaceAll(name, "-", "_")),
				env("NPM_CONFIG_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))),
				file[name],
			} {
				if v != "" && v != "null" {
					return v
				}
			}
		}
		return ""
	}
	n := npm{registry: "https://registry.npmjs.org/"}
	if r := of("registry"); r != "" {
		u, err := url.Parse(r)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return npm{}, fmt.Errorf("npm's setting registry is no address: %q", r)
		}
		n.registry = strings.TrimRight(r, "/") + "/"
	}
	if p := of("https-proxy", "proxy"); p != "" {
		if n.proxy, err = url.Parse(p); err != nil || n.proxy.Host == "" {
			return npm{}, errors.New("npm's setting https-proxy or proxy is no address")
		}
	}
	return n, nil
}

// npmrc reads the plain settings of a file: name=value.
func npmrc(path string) (map[string]string, error) {
	values := map[string]string{}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return values, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "=")
		if name = strings.TrimSpace(name); ok && !strings.HasPrefix(name, ";") && !strings.HasPrefix(name, "#") {
			values[name] = strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return values, lines.Err()
}

func (n npm) proxyOf(r *http.Request) (*url.URL, error) {
	if n.proxy != nil {
		return n.proxy, nil
	}
	return http.ProxyFromEnvironment(r)
}
