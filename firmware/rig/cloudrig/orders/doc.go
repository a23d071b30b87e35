// Package orders tests what people order by the rackcloud program: commands, tasks, keys and identities, with rackcloud,
// rackd and simulated phones as they run, and nothing in between.
package orders
