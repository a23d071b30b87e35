// Package controllerrig shows on the emulated board what only a real kernel and its USB controller can show: how the power of
// forty ports comes, that the controller has no room for one more phone, and that a halted endpoint goes on when the kernel
// clears its halt. It holds tests and nothing else.
package controllerrig
