package folder

import "fmt"

// Code names what is wrong with a folder or its file.
type Code string

// Codes of things for which a skill is left out in either mode.
const (
	NoHome        Code = "no_home"         // a path begins with ~ and there is no home
	PathMissing   Code = "path_missing"    // a searched folder is not there
	PathUnread    Code = "path_unread"     // it cannot be listed
	TooMany       Code = "too_many"        // more folders or paths than are looked at
	WrongCase     Code = "wrong_case"      // skill.md or Skill.md in place of SKILL.md
	Outside       Code = "outside"         // a link leads out of the skill's folder
	Unreadable    Code = "unreadable"      // the file cannot be read, or is none
	TooLarge      Code = "too_large"       // above the bounds
	NotText       Code = "not_text"        // not UTF-8, or with zero bytes
	NoFrontMatter Code = "no_front_matter" // the file does not begin with a fence
	NotClosed     Code = "not_closed"      // there is no second fence
	BadYAML       Code = "bad_yaml"        // the front matter cannot be read
	NoDescription Code = "no_description"
	BadName       Code = "bad_name" // a name that cannot stand in an id
	BadSchema     Code = "bad_schema"
)

// Codes of departures that a lenient scan takes and a strict one does not.
const (
	BlankBefore        Code = "blank_before"        // blank lines before the first fence
	UnquotedColon      Code = "unquoted_colon"      // a value with ": " had to be quoted to be read
	NoName             Code = "no_name"             // the folder's name stands in
	NameForm           Code = "name_form"           // not lower case, or other characters than the standard allows
	NameDiffers        Code = "name_differs"        // from the folder's
	LongDescription    Code = "long_description"    // more than 1,024 characters
	LongCompatibility  Code = "long_compatibility"  // more than 500
	UnknownField       Code = "unknown_field"       // a key that neither standard nor extension has
	FieldType          Code = "field_type"          // a key whose value is of another type
	InvisibleCharacter Code = "invisible_character" // taken out, but for a strict scan
)

// Finding is something about a skill's file that a person should know.
type Finding struct {
	Code   Code   `json:"code"`
	Detail string `json:"detail"` // a sentence part, in English
	Line   int    `json:"line,omitempty"`
}

func (f Finding) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Detail)
	}
	return f.Detail
}

func finding(code Code, line int, format string, args ...any) Finding {
	return Finding{Code: code, Line: line, Detail: fmt.Sprintf(format, args...)}
}

// Skip is a folder that gives no skill, with the reason.
type Skip struct {
	Path string `json:"path"` // of the searched folder, of the skill's folder or of the file
	Finding
}

func (s Skip) Error() string { return s.Path + ": " + s.Finding.Error() }
