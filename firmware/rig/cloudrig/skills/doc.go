// Package skills tests tasks that use skills, from the operator's files to what a provider of models is asked: rackcloud,
// rackd, a simulated phone, an MCP server and a fake provider as they run, and nothing in between.
package skills
