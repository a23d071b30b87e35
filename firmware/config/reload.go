package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Class says when a changed key counts.
type Class int

// Classes of keys. The zero value is no class: a key without one is a defect that a test finds.
const (
	Live    Class = iota + 1 // at a reload
	Restart                  // after a restart: parts are built from it
)

// classes has every key, and for arrays of tables the table.
var classes = map[string]Class{
	"log.level":        Live,
	"control.max_hold": Live,

	"rack.id": Restart, "rack.board": Restart, "rack.state": Restart, "rack.runtime": Restart,
	"planner.transport": Restart, "planner.rules": Restart, "planner.pictures": Restart,
	"planner.direct.provider": Restart, "planner.direct.model": Restart, "planner.direct.base_url": Restart,
	"planner.direct.key_file": Restart, "planner.direct.timeout": Restart, "planner.direct.options": Restart,
	"cloud.identity": Restart, "cloud.broker": Restart, "cloud.proxy": Restart,
	"skills.enabled": Restart, "skills.agent_skills_paths": Restart, "skills.agent_skills_mode": Restart,
	"skills.agent_skills_conflicts": Restart, "skills.poll_interval": Restart, "skills.server": Restart,
	"skills.platform.url": Restart, "skills.platform.credential_file": Restart, "skills.platform.ca_file": Restart,
	"skills.platform.keys": Restart, "skills.platform.rack": Restart, "skills.platform.subscription": Restart, "skills.platform.since": Restart,
	"helpers.folder": Restart, "usb.enabled": Restart, "usb.sysfs": Restart, "stream": Restart, "log.format": Restart,
	"control.socket": Restart, "control.group": Restart,
	"health.battery.cable_drop": Restart, "health.battery.cable_time": Restart, "health.battery.cool_for": Restart, "health.battery.high": Restart,
	"health.battery.hot_stops": Restart, "health.battery.interval": Restart, "health.battery.low": Restart, "health.battery.rest_for": Restart,
	"health.battery.resume_hot": Restart, "health.battery.stop_hot": Restart, "health.battery.windows": Restart, "health.ladder.actions": Restart,
	"health.ladder.clear_halt.per_day": Restart, "health.ladder.clear_halt.settle": Restart, "health.ladder.clear_halt.tries": Restart,
	"health.ladder.enabled": Restart, "health.ladder.flaps": Restart, "health.ladder.hub_cycle.per_day": Restart,
	"health.ladder.hub_cycle.settle": Restart, "health.ladder.hub_cycle.tries": Restart, "health.ladder.longest_wait": Restart,
	"health.ladder.off_time": Restart, "health.ladder.patience": Restart, "health.ladder.port_cycle.per_day": Restart,
	"health.ladder.port_cycle.settle": Restart, "health.ladder.port_cycle.tries": Restart, "health.ladder.proven_after": Restart,
	"health.ladder.reboot.per_day": Restart, "health.ladder.reboot.settle": Restart, "health.ladder.reboot.tries": Restart,
	"health.ladder.reopen.per_day": Restart, "health.ladder.reopen.settle": Restart, "health.ladder.reopen.tries": Restart,
	"health.ladder.reset_models": Restart, "health.ladder.resync.per_day": Restart, "health.ladder.resync.settle": Restart,
	"health.ladder.resync.tries": Restart, "health.ladder.usb_reset.per_day": Restart, "health.ladder.usb_reset.settle": Restart,
	"health.ladder.usb_reset.tries": Restart, "health.phone.close_tcp": Live, "health.phone.key_lapse": Live, "health.phone.key_touch": Live,
	"health.phone.storage_bytes": Live, "health.phone.storage_free": Live, "health.probe.confirm": Restart, "health.probe.fresh_for": Restart,
	"health.probe.interval": Restart, "health.quarantine.first": Restart, "health.quarantine.longest": Restart, "health.rack.broker_after": Live,
	"health.rack.clock_jump": Live, "health.rack.crash_window": Live, "health.rack.crashes": Live, "health.rack.database_full": Live,
	"health.rack.disk_free": Live, "health.rack.disk_wear": Live, "health.rack.memory_free": Live, "health.rack.temperature": Live,
	"watchdog.device": Restart, "watchdog.timeout": Restart,
	"page.listen": Restart, "page.pin_file": Restart, "page.hosts": Restart, "mdns.enabled": Restart, "mdns.name": Restart, "metrics.listen": Restart, "metrics.token_file": Restart,
	"mcp.enabled": Restart, "mcp.listen": Restart, "mcp.token_file": Restart, "mcp.permissions": Restart,
}

// ClassOf tells when a key counts; 0 for a key that there is not.
func ClassOf(key string) Class { return classes[key] }

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
		case classes[key] == Live:
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
