package main

// ballastBytes is what the collector believes to be in use beyond what is. It is never touched, so it takes no memory, but
// a collection comes only when as much again has been allocated. A planner request allocates about a megabyte, of which
// nothing stays: with a heap of 10 MiB the collector ran after each tenth of them and took a tenth of the processor's time.
// The memory that it costs is at most this much garbage more, docs/rackcloud.md tells how much.
const ballastBytes = 32 << 20

// ballast is kept alive by the serving process.
func ballast() []byte { return make([]byte, ballastBytes) }
