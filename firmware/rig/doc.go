// Package rig is an emulated board for tests and for the demo: QEMU runs a 64-bit Arm board with a stock Debian kernel,
// rackd runs in it as it does in the product, and phones are plugged into its USB hubs from outside.
//
// The life of a board: [Prepare] finds what setup.sh has put into the cache and gives a [Kit]; [Kit.Boot] starts QEMU
// with the hubs, ports and files of a [BoardConfig] and returns a [Board] once a shell in the guest answers;
// [Board.Plug] connects a [Redirector], which is the device side of a USB port, and the guest's kernel enumerates it;
// [Board.Run] and [Board.Start] run programs in the guest; [Board.Close] ends everything.
//
// Ports are named as in the guest's sysfs and as in a board file: "1-2" is port 2 of the controller, "1-2.4" is port 4
// of the hub there.
//
// There is no agent in the guest: the shell behind [Board.Run] is busybox on a virtio port, and what is tested is the
// program that ships. Nothing of the host's kernel is used but processes and sockets, so that no privilege is needed;
// only [Kit.StartAdbd], which gives a real adbd namespaces of its own, asks for root.
//
// Every process is in a group of its own, ends with the process that started it, and is ended by its number. Every wait
// ends with its context.
package rig
