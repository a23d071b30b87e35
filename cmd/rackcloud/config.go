package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// serveConfig reads the file of --config. Its keys are the flags of serve, with - or _ between words.
func serveConfig(r io.Reader) (kong.Resolver, error) {
	var keys map[string]any
	if err := toml.NewDecoder(r).Decode(&keys); err != nil {
		return nil, fmt.Errorf("the configuration cannot be read: %w", err)
	}
	c := configFile{}
	for k, v := range keys {
		c[strings.ReplaceAll(k, "_", "-")] = v
	}
	return c, nil
}

type configFile map[string]any

// Validate implements kong.Resolver: a key that nothing reads is a fault.
func (c configFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	for _, n := range app.Children {
		if n.Name == "serve" {
			for _, f := range n.Flags {
				known[f.Name] = true
			}
		}
	}
	for k := range c {
		if !known[k] || k == "config" {
			return fmt.Errorf("the configuration has the key %q, which is no flag of rackcloud serve", k)
		}
	}
	return nil
}

// Resolve implements kong.Resolver.
func (c configFile) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if parent.Command == nil || parent.Command.Name != "serve" {
		return nil, nil
	}
	v, ok := c[flag.Name]
	if !ok {
		return nil, nil
	}
	if list, ok := v.([]any); ok {
		words := make([]string, len(list))
		for i, w := range list {
			words[i] = fmt.Sprint(w)
		}
		return strings.Join(words, ","), nil
	}
	return fmt.Sprint(v), nil
}
