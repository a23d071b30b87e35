// Fetch downloads the helper apps of Appium from the npm registry into a
// folder, for `make helpers`:
//
//	go run ./agent/phone/appium/fetch FOLDER
//
// Package appium pins what it fetches: each tarball by its integrity, each app in
// it by its SHA-256. What is there already and right is left as it is. npm's own
// settings for the registry and the proxy are honoured (npm_config_registry,
// npm_config_https_proxy, .npmrc at home), and so are HTTPS_PROXY and the like.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"phonerack/agent/phone/appium"
)

// limit bounds the download of one package.
const limit = 10 * time.Minute

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fetch FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "helpers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	home, _ := os.UserHomeDir()
	npm, err := settings(home, os.Getenv)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{Proxy: npm.proxyOf, TLSHandshakeTimeout: 30 * time.Second, ResponseHeaderTimeout: time.Minute}}
	for _, p := range appium.Packages() {
		ctx, cancel := context.WithTimeout(ctx, limit)
		fetched, err := fetch(ctx, client, npm.registry, folder, p)
		cancel()
		switch {
		case err != nil:
			return err
		case fetched:
			fmt.Printf("helpers: fetched %s %s\n", p.Name, p.Version)
		}
	}
	fmt.Printf("helpers: ready: %s\n", folder)
	return nil
}
