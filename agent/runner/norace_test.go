//go:build !race

package runner

const memoryFactor = 1
