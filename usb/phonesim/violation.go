package phonesim

import "fmt"

// Rule names a rule of the protocol that a host can break.
type Rule string

// The rules that a Phone enforces.
const (
	// RuleHeader: a header is a bulk transfer of its own, of 24 bytes.
	RuleHeader Rule = "header transfer"
	// RulePayload: a payload is a bulk transfer of its own, of the length that its header states.
	RulePayload Rule = "payload transfer"
	// RuleMissingZLP: a payload whose length is a non-zero multiple of the packet size is followed by a zero-length packet.
	RuleMissingZLP Rule = "missing zero-length packet"
	// RuleStrayZLP: there is no zero-length packet anywhere else.
	RuleStrayZLP Rule = "stray zero-length packet"
	// RuleReadSize: a read has room for the packet that is on its way.
	RuleReadSize Rule = "read size"
	// RuleClearHalt: only a halted endpoint's halt is cleared; some phones lose the endpoint otherwise.
	RuleClearHalt Rule = "clear halt"
	// RuleSetInterface: the interface has one setting and nobody selects it; some phones cancel every transfer otherwise.
	RuleSetInterface Rule = "set interface"

	// RuleMagic: the last word of a header is its first, inverted.
	RuleMagic Rule = "magic"
	// RuleLength: a payload is no longer than what both sides agreed on; CNXN and AUTH have at most 4096 bytes.
	RuleLength Rule = "length"
	// RuleSum: the payload's sum is right where the version wants one.
	RuleSum Rule = "sum"
	// RuleCommand: only commands that are known, and none for another kind of link.
	RuleCommand Rule = "command"
	// RuleHandshake: CNXN is well formed.
	RuleHandshake Rule = "handshake"
	// RulePublicKey: a key is offered as one line of base64, a space, a comment, and NUL.
	RulePublicKey Rule = "public key"
	// RuleOpen: OPEN has an id, a window if and only if delayed acknowledgement is on, and comes when the phone is online.
	RuleOpen Rule = "open"
	// RuleDestination: the destination of OPEN ends with a NUL, which Android 7 insists on.
	RuleDestination Rule = "destination"
	// RuleFlow: one WRTE is in flight on a stream, and OKAY answers one.
	RuleFlow Rule = "flow control"
	// RuleWindow: with delayed acknowledgement nothing is sent into a window that is used up.
	RuleWindow Rule = "window"
)

// Violation is a rule broken by the host. It is an error: where a real phone would end the link, ServeStream
// or ServeRedir returns it.
type Violation struct {
	Rule   Rule
	Detail string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("host broke the rule of %s: %s", v.Rule, v.Detail)
}

func violationf(rule Rule, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}
