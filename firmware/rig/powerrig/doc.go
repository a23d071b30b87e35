// Package powerrig takes the power of a whole site: the emulated board with rackd and rackcloud on it, both with their
// state on one ext4 disk, and simulated phones in its ports.
package powerrig
