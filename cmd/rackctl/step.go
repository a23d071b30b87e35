package main

import (
	"encoding/json"
	"strconv"

	"phonerack/agent/runner"
)

// step is what rackctl prints of a step; the rest is in the trajectory.
type step struct {
	N         int             `json:"n"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Target    string          `json:"target"`
	Outcome   string          `json:"outcome"`
	Effect    string          `json:"effect"`
	Text      string          `json:"text"`
	Refusal   struct {
		Code string `json:"code"`
	} `json:"refusal"`
}

// arguments are those of all tools together that a line has room for.
type arguments struct {
	Text      string `json:"text"`
	Submit    bool   `json:"submit"`
	Key       string `json:"key"`
	Package   string `json:"package"`
	Direction string `json:"direction"`
	MS        int    `json:"ms"`
}

// act is what was done, to which part of the screen.
func (s step) act() string {
	if s.Tool == "" {
		return "no decision"
	}
	var args arguments
	if json.Unmarshal(s.Arguments, &args) != nil {
		args = arguments{} // the planner may call a tool with anything
	}
	words, on := s.Tool, " "
	switch s.Tool {
	case "input_text":
		words, on = words+" "+quoted(args.Text), " into "
	case "press_key":
		words += " " + args.Key
	case "launch_app":
		words += " " + args.Package
	case "swipe":
		words, on = words+" "+args.Direction, " on "
	case "wait":
		words += " " + strconv.Itoa(args.MS) + " ms"
	}
	if s.Target != "" {
		words += on + s.Target
	}
	if args.Submit {
		words += " and enter"
	}
	return words
}

// came is what the act came to.
func (s step) came() string {
	words := s.Outcome
	if s.Refusal.Code != "" {
		words += " " + s.Refusal.Code
	}
	words += "; " + s.Effect
	if s.Text != "" {
		words += "; text " + s.Text
	}
	return words
}

// maxTyped bounds typed text in a line, in characters.
const maxTyped = 60

// quoted shows what was typed; what went into a password field is not there to be shown.
func quoted(text string) string {
	if text == runner.NotKept {
		return text
	}
	if runes := []rune(text); len(runes) > maxTyped {
		text = string(runes[:maxTyped]) + "…"
	}
	return strconv.Quote(text)
}
