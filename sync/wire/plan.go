package wire

import "encoding/json"

// PlanTool is a tool that may be called in a turn.
type PlanTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// PlanRequest asks for the decision of one turn. The attachment "screen", a
// JPEG, is optional. TaskID and Attempt are both there or both absent. A timeout,
// model or key in it is ignored: the cloud's profile alone counts (spec 003).
type PlanRequest struct {
	RequestID    string     `json:"request_id"`
	HostID       string     `json:"host_id"` // must be the rack of the topic
	TaskID       string     `json:"task_id,omitempty"`
	Attempt      int        `json:"attempt,omitempty"`
	SystemPrompt string     `json:"system_prompt"`
	UserPrompt   string     `json:"user_prompt"`
	Tools        []PlanTool `json:"tools"`
}

// ScreenAttachment names the screenshot of a [PlanRequest].
const ScreenAttachment = "screen"

// PlanAccepted comes at once: the rack waits for DeadlineMS from the arrival of
// this, then the turn has failed.
type PlanAccepted struct {
	RequestID  string `json:"request_id"`
	DeadlineMS int64  `json:"deadline_ms"`
}

// PlanDecision is the one tool call of a turn.
type PlanDecision struct {
	RequestID string          `json:"request_id"`
	StepIndex int             `json:"step_index"` // counts the decisions of (task, attempt) from 0; 0 outside of a task
	ToolName  string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"` // an object
	Tokens    int             `json:"tokens,omitempty"`
}

// PlanFailure says why a turn has no decision.
type PlanFailure struct {
	RequestID string   `json:"request_id"`
	Error     *Refusal `json:"error"`
}
