// Package config reads rackd's configuration, a TOML file, and the board file that it names.
//
// Load returns either a Config in which every value is usable, or all faults at once, each with its place in the file
// and what to do about it. Unknown keys are faults: a misspelt key would otherwise be a default that nobody asked for.
// Paths in the file are relative to the folder of the file. rackd writes below the state and runtime folders only.
//
// Example is a commented file with every key.
package config
