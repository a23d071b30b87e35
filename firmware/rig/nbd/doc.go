// Package nbd is a disk for the emulated board that loses its power as badly as a disk may: what was written and not
// flushed is kept in memory, and at the cut chance decides, block by block, what of it the disk still has.
//
// The life of a disk: [New] puts it before a file; [Serve] offers it to QEMU by the NBD protocol on a unix socket; the
// guest writes and flushes; [Disk.Cut] takes the power. After that the disk answers nothing any more and the file holds
// what is left; the next boot gets a new Disk before the same file.
//
// The promise of a disk, and no more than that: a write that was answered before a flush came is there after the
// flush was answered; a write with FUA is there once it is answered; a sector of 512 bytes is never torn. Between flushes writes
// of different blocks may reach the disk in any order, of 4 KiB any of their sectors may be missing, and of a sector that
// was written several times any version may be the last.
//
// Requests are served one after the other, so that a write that was sent together with a flush, before it, is
// flushed too. The file itself is never synced: it is QEMU's power that is cut, not that of this machine.
package nbd
