// Package catalog tests what comes down to a rack besides tasks and commands: skills, settings and files of tasks, with
// rackcloud, rackd and a simulated phone as they run. Operators use the rackcloud program, persons rackctl, and a client
// of the Model Context Protocol talks through it. Between rack and broker stands a [gate], which can hold up either
// direction.
package catalog
