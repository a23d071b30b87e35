package mcp_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// memory is what is in use after a collection: bytes of the heap, goroutines, and
// bytes of the process; 0 for the last where the kernel does not tell.
func memory(t *testing.T) (heap int64, goroutines int, rss int64) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if status, err := os.ReadFile("/proc/self/statm"); err == nil {
		pages, err := strconv.ParseInt(strings.Fields(string(status))[1], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		rss = pages * int64(os.Getpagesize())
	}
	return int64(m.HeapAlloc), runtime.NumGoroutine(), rss
}
