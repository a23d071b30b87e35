//go:build race

package runner

// memoryFactor is about what the race detector multiplies memory by.
const memoryFactor = 6
