package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// class says when a changed key counts.
type class int

// Classes of keys. The zero value is no class: a key without one is a defect that a test finds.
const (
	live    class = iota + 1 // at a reload
	restart                  // after a restart: parts are built from it
)

// classes has every key, and for arrays of tables the table.
var classes = map[string]class{
	"log.level":        live,
	"control.max_hold": live,

	"rack.id": restart, "rack.board": restart, "rack.state": restart, "rack.runtime": restart,
	"planner.transport": restart, "planner.rules": restart, "planner.pictures": restart,
	"planner.direct.provider": restart, "planner.direct.model": restart, "planner.direct.base_url": restart,
	"planner.direct.key_file": restart, "planner.direct.timeout": restart, "planner.direct.options": restart,
	"cloud.identity": restart, "cloud.broker": restart, "cloud.proxy": restart,
	"skills.enabled": restart, "skills.agent_skills_paths": restart, "skills.agent_skills_mode": restart,
	"skills.agent_skills_conflicts": restart, "skills.poll_interval": restart, "skills.server": restart,
	"skills.platform.url": restart, "skills.platform.credential_file": restart, "skills.platform.ca_file": restart,
	"skills.platform.keys": restart, "skills.platform.rack": restart, "skills.platform.subscription": restart, "skills.platform.since": restart,
	"helpers.folder": restart, "usb.enabled": restart, "usb.sysfs": restart, "stream": restart, "log.format": restart,
	"control.socket": restart, "control.group": restart,
	"health.battery.cable_drop": restart, "health.battery.cable_time": restart, "health.battery.cool_for": restart, "health.battery.high": restart,
	"health.battery.hot_stops": restart, "health.battery.hot_window": restart, "health.battery.wanted_for": restart, "health.battery.interval": restart, "health.battery.low": restart, "health.battery.rest_for": restart,
	"health.battery.resume_hot": restart, "health.battery.stop_hot": restart, "health.battery.windows": restart, "health.ladder.actions": restart,
	"health.ladder.clear_halt.per_day": restart, "health.ladder.clear_halt.settle": restart, "health.ladder.clear_halt.tries": restart,
	"health.ladder.enabled": restart, "health.ladder.flap_window": restart, "health.ladder.flaps": restart, "health.ladder.hub_cycle.per_day": restart,
	"health.ladder.hub_cycle.settle": restart, "health.ladder.hub_cycle.tries": restart, "health.ladder.longest_wait": restart,
	"health.ladder.off_time": restart, "health.ladder.patience": restart, "health.ladder.port_cycle.per_day": restart,
	"health.ladder.port_cycle.settle": restart, "health.ladder.port_cycle.tries": restart, "health.ladder.proven_after": restart,
	"health.ladder.reboot.per_day": restart, "health.ladder.reboot.settle": restart, "health.ladder.reboot.tries": restart,
	"health.ladder.reopen.per_day": restart, "health.ladder.reopen.settle": restart, "health.ladder.reopen.tries": restart,
	"health.ladder.reset_models": restart, "health.ladder.resync.per_day": restart, "health.ladder.resync.settle": restart,
	"health.ladder.resync.tries": restart, "health.ladder.usb_reset.per_day": restart, "health.ladder.usb_reset.settle": restart,
	"health.ladder.usb_reset.tries": restart, "health.phone.close_tcp": live, "health.phone.key_lapse": live, "health.phone.key_touch": live,
	"health.phone.mends_per_day": live, "health.phone.storage_bytes": live, "health.phone.storage_free": live, "health.probe.confirm": restart, "health.probe.fresh_for": restart,
	"health.probe.interval": restart, "health.quarantine.first": restart, "health.quarantine.longest": restart, "health.rack.broker_after": live,
	"health.rack.clock_jump": live, "health.rack.crash_window": live, "health.rack.crashes": live, "health.rack.database_full": live,
	"health.rack.disk_free": live, "health.rack.disk_wear": live, "health.rack.jump_shown": live, "health.rack.memory_free": live,
	"health.rack.overload_for": live, "health.rack.temperature": live,
	"watchdog.device": restart, "watchdog.timeout": restart,
	"page.listen": restart, "page.pin_file": restart, "page.hosts": restart, "mdns.enabled": restart, "mdns.name": restart, "metrics.listen": restart, "metrics.token_file": restart,
	"mcp.enabled": restart, "mcp.listen": restart, "mcp.token_file": restart, "mcp.permissions": restart,
}

// Changes are the keys whose values differ, by class and in order.
type Changes struct {
	Live    []string // count now
	Restart []string // count after a restart
}

// Compare finds what is changed from one configuration to another. Files that keys name are not compared: of those, secrets
// are read anew when they are used, all others with a restart.
func Compare(from, to *Config) Changes {
	before, after := map[string]any{}, map[string]any{}
	leaves("", reflect.ValueOf(*from), before)
	leaves("", reflect.ValueOf(*to), after)
	c := Changes{Live: []string{}, Restart: []string{}}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		switch {
		case reflect.DeepEqual(before[key], after[key]):
		case classes[key] == live:
			c.Live = append(c.Live, key)
		default:
			c.Restart = append(c.Restart, key)
		}
	}
	return c
}

// leaves collects the values of a configuration by their keys.
func leaves(above string, v reflect.Value, into map[string]any) {
	for field, value := range v.Fields() {
		name := field.Tag.Get("toml")
		switch {
		case name == "-" || name == "":
		case value.Kind() == reflect.Struct:
			leaves(above+name+".", value, into)
		default:
			into[above+name] = value.Interface()
		}
	}
}

// Sentence says in one line what is wrong with a configuration that Load refused: the first fault, and how many more.
func Sentence(err error) string {
	first, more := err, 0
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok && len(joined.Unwrap()) > 0 {
		first, more = joined.Unwrap()[0], len(joined.Unwrap())-1
	}
	text := strings.Join(strings.Fields(first.Error()), " ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more, which rackd config check lists", more)
	}
	return text
}
