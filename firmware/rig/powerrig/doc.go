// Package powerrig takes the power of a whole site: the emulated board with rackd and rackcloud on it, both with their
// state on one ext4 disk, and simulated phones in its ports.
//
// The life of a site: [New] makes the disk; [Site.Boot] boots the board from it and starts both programs;
// [Site.Submit] gives work; [Site.Cut] ends QEMU with SIGKILL, whatever it is doing. Then it is booted again with
// the same disk and the same phones, whose apps remember all that was done to them.
//
// The disk is one of two ([Kind]). What it has after a cut is judged on a copy: by e2fsck ([Unpack]), and by bbolt, SQLite
// and what rack and cloud have written down ([Read]).
package powerrig
