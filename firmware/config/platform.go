package config

import (
	"cmp"
	"crypto/x509"
	"io"
	"net/url"
	"os"
	"reflect"
	"strings"

	"phonerack/sync/wire"
)

const maxCAFile = 1 << 20 // bytes

// platform reads what another platform of skills is proved by: without it nothing of it could be used.
func (c *checker) platform(conf *Config) {
	p := &conf.Skills.Platform
	if p.URL == "" {
		if !reflect.ValueOf(*p).IsZero() {
			c.fault("skills.platform", "skills.platform.url is missing: write the platform's address, or leave the table out, and subscriptions come from the cloud")
		}
		return
	}
	if fault := platformURL(p.URL); fault != "" {
		c.fault("skills.platform.url", "skills.platform.url is %q: %s", shownURL(p.URL), fault)
	}
	if p.CredentialFile == "" {
		c.fault("skills.platform.url", "skills.platform.url is there, but skills.platform.credential_file is missing: name a file of mode 0600 with what the platform gave")
	} else if _, err := p.Credential(); err != nil {
		c.fault("skills.platform.credential_file", "skills.platform.credential_file: %v", err)
	}
	p.Rack = cmp.Or(p.Rack, conf.Bundle.Rack, conf.Rack.ID)
	if !wire.ValidID(p.Rack) {
		c.fault("skills.platform.rack", "skills.platform.rack is %q: use 1 to 63 of the characters a-z, 0-9 and -", p.Rack)
	}
	if p.Subscription != "" && !wire.ValidID(p.Subscription) {
		c.fault("skills.platform.subscription", "skills.platform.subscription is %q: use 1 to 63 of the characters a-z, 0-9 and -", p.Subscription)
	}
	var err error
	if p.Trusted, err = (wire.Bundle{SkillKeys: p.Keys}).ManifestKeys(); err != nil || len(p.Trusted) == 0 {
		c.fault("skills.platform.keys", `skills.platform.keys are not the keys that sign manifests: write each as "id:base64" of its 32 bytes, with one blank between two`)
	}
	if p.CAFile != "" {
		c.authorities(p)
	}
}

// shownURL is an address as a fault may quote it: what stands before an "@" or after a "?" may be a secret.
func shownURL(address string) string {
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		address = "…" + address[at:]
	}
	if place, _, found := strings.Cut(address, "?"); found {
		address = place + "?…"
	}
	return address
}

// platformURL says what is wrong with an address: the credential goes there, so that plain HTTP is for this machine only.
func platformURL(address string) string {
	const form = "write it as https://host/path, without user and query"
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return form
	case u.Scheme == "http" && addressFault(Stream{Address: "tcp:" + u.Host}) != "":
		return "plain http would show the credential to everybody on the way; " + form
	case u.Scheme != "https" && u.Scheme != "http":
		return form
	}
	return ""
}

func (c *checker) authorities(p *Platform) {
	f, err := os.Open(p.CAFile)
	if err != nil {
		c.fault("skills.platform.ca_file", "skills.platform.ca_file: %v", err)
		return
	}
	defer f.Close()
	pem, err := io.ReadAll(io.LimitReader(f, maxCAFile))
	if pool := x509.NewCertPool(); err == nil && pool.AppendCertsFromPEM(pem) {
		p.Authorities = pool
		return
	}
	c.fault("skills.platform.ca_file", "skills.platform.ca_file is %s, which holds no certificate: name the PEM file of the platform's authority", p.CAFile)
}
