package wire

import (
	"fmt"
	"strings"
)

// Bounds of what names something on the wire.
const (
	maxIDBytes    = 63
	maxTopicBytes = 256
)

// ValidID tells whether s is an id of the wire: 1 to 63 bytes of [a-z0-9-]. No
// broker gives any of them a meaning of its own.
func ValidID(s string) bool {
	if s == "" || len(s) > maxIDBytes {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// Direction is whose message it is: the rack's (up) or the cloud's (dn).
type Direction string

// The two directions, as they stand in topics.
const (
	Up   Direction = "up"
	Down Direction = "dn"
)

// Kind is the last part of a topic: the conversation that a message belongs to.
type Kind string

// The kinds. State, telemetry and event exist upwards only, desired downwards only.
const (
	KindState     Kind = "state"     // retained, and the will
	KindTelemetry Kind = "telemetry" // QoS 0, loss allowed
	KindSession   Kind = "session"
	KindPlan      Kind = "plan"
	KindTask      Kind = "task"
	KindSkill     Kind = "skill"
	KindCommand   Kind = "cmd"
	KindEvent     Kind = "event"
	KindDesired   Kind = "desired" // retained
)

var kinds = map[Direction][]Kind{
	Up:   {KindState, KindTelemetry, KindSession, KindPlan, KindTask, KindSkill, KindCommand, KindEvent},
	Down: {KindSession, KindPlan, KindTask, KindSkill, KindCommand, KindDesired},
}

// Kinds returns the kinds of a direction.
func Kinds(d Direction) []Kind { return append([]Kind(nil), kinds[d]...) }

// Topic is pr/v1/<tenant>/<rack>/<direction>/<kind>.
type Topic struct {
	Tenant, Rack string
	Direction    Direction
	Kind         Kind
}

const topicPrefix = "pr/v1/"

// String gives the topic as MQTT has it.
func (t Topic) String() string {
	return topicPrefix + t.Tenant + "/" + t.Rack + "/" + string(t.Direction) + "/" + string(t.Kind)
}

// Retained tells whether the retain flag belongs on the topic; on every other
// one a message with the flag is refused.
func (t Topic) Retained() bool { return t.Kind == KindState || t.Kind == KindDesired }

// QoS is the quality of service with which the topic is published.
func (t Topic) QoS() byte {
	if t.Kind == KindTelemetry {
		return 0
	}
	return 1
}

// Check says what is wrong with a topic that was put together here.
func (t Topic) Check() error {
	if !ValidID(t.Tenant) {
		return fmt.Errorf("tenant %.80q is no id of [a-z0-9-]{1,63}", t.Tenant)
	}
	if !ValidID(t.Rack) {
		return fmt.Errorf("rack %.80q is no id of [a-z0-9-]{1,63}", t.Rack)
	}
	for _, k := range kinds[t.Direction] {
		if k == t.Kind {
			return nil
		}
	}
	return fmt.Errorf("there is no topic %s/%s", t.Direction, t.Kind)
}

// ParseTopic reads a topic and accepts nothing but what [Topic.String] writes.
func ParseTopic(s string) (Topic, error) {
	if len(s) > maxTopicBytes || !strings.HasPrefix(s, topicPrefix) {
		return Topic{}, fmt.Errorf("topic %.80q does not begin with %s", s, topicPrefix)
	}
	parts := strings.Split(s[len(topicPrefix):], "/")
	if len(parts) != 4 {
		return Topic{}, fmt.Errorf("topic %.80q has no tenant, rack, direction and kind", s)
	}
	t := Topic{Tenant: parts[0], Rack: parts[1], Direction: Direction(parts[2]), Kind: Kind(parts[3])}
	if err := t.Check(); err != nil {
		return Topic{}, fmt.Errorf("topic %.80q: %w", s, err)
	}
	return t, nil
}

// DownFilter is the one filter to which a rack subscribes.
func DownFilter(tenant, rack string) string {
	return topicPrefix + tenant + "/" + rack + "/dn/+"
}

// UpFilter is what the cloud subscribes to for one kind, of all tenants and racks.
func UpFilter(k Kind) string { return topicPrefix + "+/+/up/" + string(k) }
