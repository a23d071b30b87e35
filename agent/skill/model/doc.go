// Package model holds what a skill is, as rack and cloud both know it.
//
// A [Skill] is what a subscription brings: one model with a kind, knowledge (text
// that a planner reads) or flow_template (steps that a planner fills in and calls
// itself). Its canonical JSON, from [Skill.Encode], is what the platform publishes
// and what its SHA-256 in a manifest stands for. A [RegistrySkill] is a named
// collection of tools, made of ordered items. A [Manifest] is what the platform
// signs: which skills a rack has, by hash.
//
// Each Parse function reads one of them strictly. What comes from a file or from
// the wire is untrusted: sizes, depth and counts are bounded, a key that is
// unknown or there twice, or a value of another type, is refused, and an [Error]
// says where, in one sentence. docs/schemas has the same rules as JSON Schemas,
// docs/skills.md describes all of it to people.
//
// The package does no I/O, and the cloud imports it.
package model
