package wire

// Code names one reason for a refusal. Codes travel between versions: a code
// that was ever sent keeps its meaning, and a receiver copes with codes that
// it does not know.
type Code string

// Common codes, spoken by the cloud and by the rack.
const (
	Unauthenticated Code = "unauthenticated"   // credentials missing or wrong
	HostMismatch    Code = "host_mismatch"     // credentials belong to another rack
	NotYourTask     Code = "not_your_task"     // the task is leased to someone else, or to nobody
	AttemptOver     Code = "attempt_over"      // the attempt has ended or its lease ran out
	RequestConflict Code = "request_conflict"  // a known request id came with another body
	LimitExceeded   Code = "limit_exceeded"    // more than the sender is allowed
	PayloadTooLarge Code = "payload_too_large" // a message above its bound
	Expired         Code = "expired"           // the message arrived after its exp
	Unsupported     Code = "unsupported"       // this version cannot do that
	NotFound        Code = "not_found"         // no such record, or one of another tenant
	Conflict        Code = "conflict"          // the record's state forbids the change
	Internal        Code = "internal"          // a fault of phonerack itself
)

// Planner codes: why there is no decision for a turn.
const (
	NoProfile            Code = "no_profile"
	ProfileUndecryptable Code = "profile_undecryptable"
	ProviderTimeout      Code = "provider_timeout"
	ProviderRateLimited  Code = "provider_rate_limited"
	ProviderOverloaded   Code = "provider_overloaded"
	ProviderAuth         Code = "provider_auth"
	ProviderBadRequest   Code = "provider_bad_request"
	ProviderUnreachable  Code = "provider_unreachable"
	NoToolCall           Code = "no_tool_call"
	MultipleToolCalls    Code = "multiple_tool_calls"
	UnknownTool          Code = "unknown_tool"
	BadArguments         Code = "bad_arguments"
	Truncated            Code = "truncated"
	Refused              Code = "refused"
	ContentFiltered      Code = "content_filtered"

	// PlannerTimeout and PlannerUnreachable are the rack's own: no answer came
	// back before the turn's deadline, or the question could not be sent.
	PlannerTimeout     Code = "planner_timeout"
	PlannerUnreachable Code = "planner_unreachable"
)

// Local codes about slots and phones.
const (
	SlotBusy          Code = "slot_busy"          // someone else holds the slot's lease
	SlotUnknown       Code = "slot_unknown"       // the board file has no such slot
	SlotEmpty         Code = "slot_empty"         // no phone is plugged in there
	NotLeased         Code = "not_leased"         // a write to a phone without a live lease
	PhoneUnauthorized Code = "phone_unauthorized" // nobody accepted the debugging prompt yet
	PhoneOffline      Code = "phone_offline"      // plugged in, does not answer
	PhoneLimited      Code = "phone_limited"      // shell and files work, the screen does not
	PhoneResting      Code = "phone_resting"      // its power was off for its battery's sake, and comes back now
	PhoneHot          Code = "phone_hot"          // its power is off until it has cooled
	PhoneLost         Code = "phone_lost"         // gone in the middle of the work
	PhoneSetup        Code = "phone_setup"        // the phone's settings forbid what was asked
	PhoneRejected     Code = "phone_rejected"     // the phone answered an act with a complaint
	PhoneTimeout      Code = "phone_timeout"      // the phone did not finish in time
	OutcomeUnknown    Code = "outcome_unknown"    // the act may or may not have happened
	CannotType        Code = "cannot_type"        // the text has no way into this phone
	PartlyTyped       Code = "partly_typed"       // a part of the text is in the field
	TextDiffers       Code = "text_differs"       // the field shows something else than what was typed
	AppMissing        Code = "app_missing"        // the app is not installed
	FileMissing       Code = "file_missing"       // no such file on the phone
	FileDenied        Code = "file_denied"        // the phone does not allow access to the file
	StorageFull       Code = "storage_full"       // no room left on the phone
	PhoneLocked       Code = "phone_locked"       // the lock screen asks for a PIN
	InstallFailed     Code = "install_failed"     // the phone did not take an app
	ClipboardFailed   Code = "clipboard_failed"   // the clipboard has no way in or out
	HelperFailed      Code = "helper_failed"      // a helper app does not do its work
	FileTooLarge      Code = "file_too_large"     // a file is larger than its bound
	AndroidTooOld     Code = "android_too_old"    // the phone's Android lacks what was asked
	HelperFile        Code = "helper_file"        // a helper app's file is missing or is not the pinned one
	PowerFixed        Code = "power_fixed"        // nothing here switches the slot's power
	PowerNotCut       Code = "power_not_cut"      // switched off, and the phones have power all the same
	PowerFailed       Code = "power_failed"       // the power was not switched
	PageClosed        Code = "page_closed"        // no page listens for other machines
	NoFreePhone       Code = "no_free_phone"      // no phone of the rack is free and well
)

// Local codes about what is on a screen.
const (
	ObservationFailed Code = "observation_failed" // the screen could not be read
	StaleElement      Code = "stale_element"      // the index belongs to an older scene
	UnknownElement    Code = "unknown_element"    // the scene has no such index
	ElementHidden     Code = "element_hidden"     // nothing of the element can be touched
	ElementDisabled   Code = "element_disabled"   // the element is greyed out
	PointRefused      Code = "point_refused"      // a point lies outside the picture, or the screen has elements to name
	ElementMissing    Code = "element_missing"    // scrolling or waiting did not bring the element
)

// Local codes about documents.
const (
	DocumentUnreadable  Code = "document_unreadable"  // empty, damaged beyond repair, or no document at all
	DocumentUnsupported Code = "document_unsupported" // a kind of file that is not read
	DocumentEncrypted   Code = "document_encrypted"   // it needs a password, or another one
	DocumentTooLarge    Code = "document_too_large"   // the file, or what reading it takes
	DocumentTimeout     Code = "document_timeout"     // reading it takes too long
	DocumentCrashed     Code = "document_crashed"     // it made its reader fail
)

// Local codes about tasks and requests.
const (
	BudgetSpent        Code = "budget_spent"        // the task's steps are used up
	DeadlinePassed     Code = "deadline_passed"     // the task's time is over
	TaskCancelled      Code = "task_cancelled"      // someone cancelled the task
	TaskFailed         Code = "task_failed"         // the planner gave up
	ResultMismatch     Code = "result_mismatch"     // a success without the result that its task wants
	TaskUnknown        Code = "task_unknown"        // no such task
	RackFull           Code = "rack_full"           // the controller's own storage has no room left
	LoopDetected       Code = "loop_detected"       // the same act on the same screen again and again
	BadConfig          Code = "bad_config"          // a configuration file is wrong
	BadRequest         Code = "bad_request"         // the request cannot be understood
	UnknownAction      Code = "unknown_action"      // no such action
	Forbidden          Code = "forbidden"           // the actor's role does not allow it
	ShuttingDown       Code = "shutting_down"       // the controller is stopping
	PermissionMissing  Code = "permission_missing"  // the task may not do that
	LinkRefused        Code = "link_refused"        // a link of a kind that is not opened
	QuestionUnanswered Code = "question_unanswered" // nobody answered a question in time
	TokensSpent        Code = "tokens_spent"        // the task's tokens are used up
	NoProgress         Code = "no_progress"         // acts change nothing any more
	TaskNotWaiting     Code = "task_not_waiting"    // an answer to a task that asks nothing
	PictureGone        Code = "picture_gone"        // the picture of a command is not kept any longer, or not here
	ReplayDiffers      Code = "replay_differs"      // a replay does not match its record
	InputMissing       Code = "input_missing"       // a file of a task of the cloud could not be fetched
	NotConfigured      Code = "not_configured"      // the configuration of this rack leaves out what was asked for
)

// Codes about skills; resync_required is the cloud's. A skill that the caller is not entitled to is answered
// with not_found, like one that does not exist.
const (
	SkillUnavailable Code = "skill_unavailable" // a flow template cannot be used with the tools that are registered
	SkillsDisabled   Code = "skills_disabled"   // the configuration says that this rack has no skills
	ResyncRequired   Code = "resync_required"   // the cloud cannot tell the changes since a version

	SkillUnknown   Code = "skill_unknown"   // a task names a skill that does not exist, or that is not for tasks here
	SkillUnusable  Code = "skill_unusable"  // a task names a skill that this rack can do nothing with
	SkillWithdrawn Code = "skill_withdrawn" // a skill was taken away from a task that runs
	ServerFailed   Code = "server_failed"   // an MCP server did not do what it was asked for
)

// Codes of the technician's page.
const (
	PINNeeded     Code = "pin_needed"     // nobody has signed in with the PIN
	PINWrong      Code = "pin_wrong"      // another PIN
	PINWait       Code = "pin_wait"       // too many wrong ones
	PINUnset      Code = "pin_unset"      // the rack has none, so nobody can sign in
	HostForeign   Code = "host_foreign"   // the request names a host that the rack is not
	OriginForeign Code = "origin_foreign" // a page of another site sent the request
	PageUnknown   Code = "page_unknown"   // no such page, or not with that method
)

// passing holds the codes whose cause usually goes away by itself: the same
// request may succeed when it is repeated later.
var passing = map[Code]bool{
	LimitExceeded:       true,
	ProviderTimeout:     true,
	ProviderRateLimited: true,
	ProviderOverloaded:  true,
	ProviderUnreachable: true,
	NoToolCall:          true,
	MultipleToolCalls:   true,
	UnknownTool:         true,
	BadArguments:        true,
	Truncated:           true,
	PlannerTimeout:      true,
	PlannerUnreachable:  true,
	SlotBusy:            true,
	SlotEmpty:           true,
	NoFreePhone:         true,
	PhoneUnauthorized:   true,
	PhoneOffline:        true,
	PhoneResting:        true,
	PhoneHot:            true,
	PhoneLimited:        true,
	PhoneTimeout:        true,
	ObservationFailed:   true,
	StaleElement:        true,
	ShuttingDown:        true,
	ResyncRequired:      true,
	PINNeeded:           true,
	PINWrong:            true,
	PINWait:             true,
}
