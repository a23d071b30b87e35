package mksh

import (
	"errors"
	"sync/atomic"
)

// What one Run may use. The first two are the kernel's own (MAX_ARG_STRLEN and
// the argument list of execve); the rest keep a bad script from hurting the
// process that simulates the phone.
const (
	maxScript    = 128 << 10 // bytes of script, and of one variable
	maxArguments = 2 << 20   // bytes of all the arguments of one command
	maxSubst     = 1 << 20   // bytes that one command substitution may yield
	maxExpansion = 8 << 20   // bytes of variables that one statement may expand
	maxDepth     = 150       // shells, functions and substitutions inside each other
	maxSteps     = 200_000   // statements
	maxGlob      = 200_000   // directory entries read by globbing
	maxOutput    = 1 << 30   // bytes written to the caller
	maxJobs      = 64        // pipes and background jobs alive at once
)

// statusKilled is the exit status of a process ended by SIGKILL.
const statusKilled = 137

var errLimit = errors.New("out of resources")

// usage counts what all the shells of one Run have used.
type usage struct {
	steps  atomic.Int64
	glob   atomic.Int64
	output atomic.Int64
	jobs   atomic.Int64
}
