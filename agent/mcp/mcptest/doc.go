// Package mcptest has doubles of what a [mcp.Server] asks: skills that are kept in
// memory with who may see them, and a phone made of screens.
package mcptest
