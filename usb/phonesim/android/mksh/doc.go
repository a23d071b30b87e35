// Package mksh is the shell of a simulated phone: the language of Android's
// /system/bin/sh over a machine that exists only in memory.
//
// Scripts are parsed and their words expanded by mvdan.cc/sh; statements,
// redirections, pipes and built-in commands are executed here. A script
// reaches the outside through its System alone: files, directories and
// commands are the System's, pipes are io.Pipe, the process number is
// made up. There is no path from a script to the machine that runs the tests.
//
// The interpreter of mvdan.cc/sh is not used because it asks the host in places
// that have no handler (command -v, type, pwd -P, source, test -O, process
// substitution) and because a panic inside one of its pipes cannot be caught.
//
// A script is bounded: by its context, and by the limits in limits.go. Whatever
// it contains, Run returns a status and does not panic. Background jobs end
// when the shell does, as if hung up.
package mksh
