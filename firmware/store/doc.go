// Package store keeps what a rack must remember in one bbolt file.
//
// A Store is opened once at start, behind a guard. The file is surveyed by plain reads before it is mapped, so that a
// truncated or scribbled file is an error and never a fault; then bbolt's own Check runs. A damaged file is renamed
// aside with a time stamp, never deleted, and the last compacted copy takes its place; without a usable copy the store
// starts empty. Recovery tells which of these happened. A clean stop writes a new compacted copy.
//
// A new file appears by temporary file, fsync, rename and fsync of the folder, so that a power cut leaves either no
// file or a whole one. Each opening commits a raised boot counter before anything else can be stored.
//
// A lower package declares its bucket by name and works on it with View and Update. It must not wait for a phone, a
// network or a child process inside either of them.
//
// What the guard cannot see: bbolt has no checksum over values, so a flipped bit inside a value is read as it is.
package store
