// Package skills is what people and programs may ask of a rack's skills: it puts
// the registry, the tools that exist and the Agent Skills folders together, and
// implements action.Skills.
//
// With [Skills.Follow] they include those of a subscription; [Skills.For] is what a
// caller may see of them, and [Skills.ForMCP] what MCP clients have.
//
// [Open] reads the registry and knows the rack's own tools; [Skills.Run] looks at
// the folders, at once and then at an interval. Texts of skills are given as they
// are: whoever prints them escapes them.
package skills
