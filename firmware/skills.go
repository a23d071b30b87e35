package firmware

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"phonerack/agent/skill/registry"
	"phonerack/agent/tools"
	"phonerack/firmware/action"
	"phonerack/firmware/config"
	"phonerack/firmware/skills"
	"phonerack/sync/catalog"
	"phonerack/sync/wire"
)

// skillsBucket is that of the registry of skills.
const skillsBucket = "skills"

// openSkills reads the registry, unless the configuration says that the rack has no skills.
func (r *Rack) openSkills() error {
	c := r.config.Skills
	if !c.Enabled {
		return nil
	}
	bucket, err := r.store.Bucket(skillsBucket)
	if err != nil {
		return err
	}
	r.skills, err = skills.Open(skills.Options{
		Bucket: bucket, Tools: tools.Default().Tools(),
		Discover: registry.DiscoverOptions{Paths: c.Paths, Mode: c.AgentSkillsMode, Strategy: c.AgentSkillsConflicts},
		Servers:  c.Allowed, Every: time.Duration(c.PollInterval), Version: versions()["rackd"], Changed: r.slotsChanged, Logger: r.logOf(skillsPart),
	})
	return err
}

// catalogBucket is that of the copy of a subscription.
const catalogBucket = "catalog"

// openCatalog opens the rack's copy of its subscription and joins it with the skills: that of the platform which the
// configuration names, or that of the cloud. There may be none.
func (r *Rack) openCatalog() error {
	if r.skills == nil {
		return nil
	}
	o, err := r.catalogOptions()
	if err != nil || o.Platform == nil {
		return err
	}
	bucket, err := r.store.Bucket(catalogBucket)
	if err != nil {
		return err
	}
	o.Bucket, o.Every, o.OnChange, o.Logger = bucket, time.Duration(r.config.Skills.PollInterval), r.catalogChanged, r.log
	if r.catalog, err = catalog.Open(o); err != nil {
		return err
	}
	if r.config.Skills.Platform.URL == "" {
		r.cloud.link.Handle(wire.TypeSkillChanged, r.catalog.OnChanged)
	}
	r.skills.Follow(r.catalog)
	return nil
}

// catalogOptions say whose catalog is kept; without a platform there is none.
func (r *Rack) catalogOptions() (o catalog.Options, err error) {
	o.Now = func() (time.Time, bool) { return time.Now(), false } // nobody has told the time
	if r.cloud != nil {
		o.Now = r.cloud.link.Now
	}
	if p := r.config.Skills.Platform; p.URL != "" {
		// Another address or subscription is another catalog, and a copy of the former one is dropped.
		o.Tenant, o.Rack, o.Keys = p.URL+" "+p.Subscription, p.Rack, p.Trusted
		o.Platform, err = r.overHTTP(p)
		return o, err
	}
	if r.cloud == nil {
		return o, nil
	}
	o.Tenant, o.Rack = r.config.Bundle.Tenant, r.config.Bundle.Rack
	if o.Keys, err = r.config.Bundle.ManifestKeys(); err != nil {
		return o, err
	}
	if len(o.Keys) == 0 {
		r.log.Warn("the identity has no keys for the catalog of skills: without a new one (rackcloud host issue) there are only this rack's own")
		return o, nil
	}
	o.Platform, o.Ready = catalog.Over(r.cloud.link), r.cloud.link.WaitOnline
	return o, nil
}

// overHTTP makes the platform of the configuration. Its proxy is the cloud's, and none of the environment.
func (r *Rack) overHTTP(p config.Platform) (catalog.Platform, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: p.Authorities, MinVersion: tls.VersionTLS12}
	transport.Proxy = nil
	if proxy := r.config.Cloud.Proxy; proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			return nil, fmt.Errorf("cloud.proxy: %w", err)
		}
		transport.Proxy = http.ProxyURL(u)
	}
	transport.MaxIdleConnsPerHost = 4 // as many bodies are fetched at the same time
	r.platform = transport
	o := catalog.HTTPOptions{
		Base: p.URL, Bearer: p.Credential, Subscription: p.Subscription, Since: p.Since, Client: &http.Client{Transport: transport},
	}
	platform, err := catalog.NewHTTP(o)
	if err != nil {
		return nil, fmt.Errorf("skills.platform: %w", err)
	}
	return platform, nil
}

// runCatalog keeps the copy up to date, and leaves no connection behind.
func (r *Rack) runCatalog(ctx context.Context) error {
	if r.platform != nil {
		defer r.platform.CloseIdleConnections()
	}
	return r.catalog.Run(ctx)
}

// catalogChanged lets the skills look at the copy, and the fleet ask for tasks that need what is new in it.
func (r *Rack) catalogChanged() {
	r.skills.CatalogChanged()
	r.slotsChanged()
}

// Skills implements action.Rack.
func (r *Rack) Skills() (action.Skills, error) {
	if r.skills == nil {
		return nil, wire.Refuse(wire.SkillsDisabled, nil)
	}
	return r.skills, nil
}
