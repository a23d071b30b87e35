// Package systemd speaks with the service manager: the protocol of sd_notify(3), and the file descriptors that it keeps
// for a service over its restarts (FileDescriptorStoreMax= in systemd.service(5)).
//
//	manager := systemd.FromEnvironment()
//	kept, err := systemd.Adopt()          // first: what an earlier process had parked
//	manager.Store("gpio-hub-a", file)     // parks a line, which then outlives this process
//	manager.Ready("40 slots")             // once everything answers
//	go manager.Watch(ctx, late)           // feeds WatchdogSec= while there is progress
//	manager.Stopping()
//
// A Manager of a program that systemd did not start does nothing. Each message is a datagram of its own over a socket
// that is opened for it, so that a systemd that was executed anew (daemon-reexec) is reached too. A message waits two
// seconds at most for a manager that does not read.
//
// Adopt never closes a descriptor: on some pin controllers a line that loses its last handle turns into an input.
package systemd
