package wire

import "strings"

// Type is what a message says. A receiver answers one that it does not know
// with an error of code [Unsupported].
type Type string

// The types, by the topic's kind.
const (
	TypeHello   Type = "session.hello"   // [Hello]
	TypeWelcome Type = "session.welcome" // [Welcome]
	TypeError   Type = "error"           // [Refusal]: the request named by corr is refused

	TypeState     Type = "state"     // [State]
	TypeTelemetry Type = "telemetry" // any object
	TypeDesired   Type = "desired"   // [Desired]

	TypePlanRequest  Type = "plan.request"  // [PlanRequest]
	TypePlanAccepted Type = "plan.accepted" // [PlanAccepted]
	TypePlanDecision Type = "plan.decision" // [PlanDecision]
	TypePlanFailure  Type = "plan.failure"  // [PlanFailure]

	TypeClaim     Type = "task.claim"     // [Claim]
	TypeLease     Type = "task.lease"     // [Lease]
	TypeNone      Type = "task.none"      // [NoTask]
	TypeRenew     Type = "task.renew"     // [Renew]
	TypeRenewed   Type = "task.renewed"   // [Renewed]
	TypeRelease   Type = "task.release"   // [Release]
	TypeHeartbeat Type = "task.heartbeat" // [Heartbeat]
	TypeSync      Type = "task.sync"      // [Sync]
	TypeCancel    Type = "task.cancel"    // [Cancel]
	TypeQuestion  Type = "task.question"  // [Question]
	TypeAnswer    Type = "task.answer"    // [Answer]
	TypeResult    Type = "task.result"    // [Result]
	TypeTaskAck   Type = "task.ack"       // [Ack]

	TypeSkillChanges  Type = "skill.changes"  // [SkillChanges]
	TypeSkillManifest Type = "skill.manifest" // [SkillManifest]
	TypeSkillChanged  Type = "skill.changed"  // [SkillChanged]
	TypeBlobGet       Type = "blob.get"       // [BlobGet]
	TypeBlobData      Type = "blob.data"      // [BlobData]

	TypeExecute       Type = "cmd.execute" // [Command]
	TypePending       Type = "cmd.pending" // [Pending]
	TypeCommands      Type = "cmd.list"    // [Commands]
	TypeCommandStatus Type = "cmd.status"  // [CommandStatus]
	TypeCommandAck    Type = "cmd.ack"     // [Ack]

	TypeEvent    Type = "event"     // [Event]
	TypeEventAck Type = "event.ack" // [Ack]
)

// spec says where a type belongs. An empty word means anywhere.
type spec struct {
	direction Direction
	kind      Kind
	lasting   bool // exp is 0: the message never expires
}

var specs = map[Type]spec{
	TypeHello:         {Up, KindSession, false},
	TypeWelcome:       {Down, KindSession, false},
	TypeError:         {},
	TypeState:         {Up, KindState, true},
	TypeTelemetry:     {Up, KindTelemetry, false},
	TypeDesired:       {Down, KindDesired, true},
	TypePlanRequest:   {Up, KindPlan, false},
	TypePlanAccepted:  {Down, KindPlan, false},
	TypePlanDecision:  {Down, KindPlan, false},
	TypePlanFailure:   {Down, KindPlan, false},
	TypeClaim:         {Up, KindTask, false},
	TypeLease:         {Down, KindTask, false},
	TypeNone:          {Down, KindTask, false},
	TypeRenew:         {Up, KindTask, false},
	TypeRenewed:       {Down, KindTask, false},
	TypeRelease:       {Up, KindTask, false},
	TypeHeartbeat:     {Up, KindTask, false},
	TypeSync:          {Down, KindTask, false},
	TypeCancel:        {Down, KindTask, false},
	TypeQuestion:      {Up, KindTask, false},
	TypeAnswer:        {Down, KindTask, false},
	TypeResult:        {Up, KindTask, true},
	TypeTaskAck:       {Down, KindTask, false},
	TypeSkillChanges:  {Up, KindSkill, false},
	TypeSkillManifest: {Down, KindSkill, false},
	TypeSkillChanged:  {Down, KindSkill, false},
	TypeBlobGet:       {Up, KindSkill, false},
	TypeBlobData:      {Down, KindSkill, false},
	TypeExecute:       {Down, KindCommand, false},
	TypePending:       {Up, KindCommand, false},
	TypeCommands:      {Down, KindCommand, false},
	TypeCommandStatus: {Up, KindCommand, true},
	TypeCommandAck:    {Down, KindCommand, false},
	TypeEvent:         {Up, KindEvent, true},
	TypeEventAck:      {Down, KindSession, false},
}

// Types returns every type that this version knows, in no order.
func Types() []Type {
	list := make([]Type, 0, len(specs))
	for t := range specs {
		list = append(list, t)
	}
	return list
}

// Known tells whether this version knows the type.
func (t Type) Known() bool { _, ok := specs[t]; return ok }

func (t Type) lasting() bool { return specs[t].lasting }

// valid tells whether t could be a type of any version.
func (t Type) valid() bool {
	if t == "" || len(t) > maxIDBytes {
		return false
	}
	return strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz_.") == ""
}
