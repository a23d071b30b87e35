// Package control is the door for orders on the board itself: JSON over HTTP on a unix socket.
//
//	GET  /v1/actions          the actions with their schemas
//	POST /v1/actions/{name}   the body is the action's arguments
//
// The answer is {"result":…} or {"error":{"code":…,"args":…}}, a wire.Refusal. Who may connect is up to the socket's
// mode and group; who asks is what the kernel says of the other end (SO_PEERCRED).
//
// An action with streams is asked for with "Connection: Upgrade" and "Upgrade: phonerack-stream". After 101 both sides
// send packets:
//
//	kind    1 byte
//	length  4 bytes, big-endian, at most 65536
//	data    length bytes
//
// The client sends In packets and one InEnd; the server sends Out, Err and Ping packets and at last Result packets,
// whose data together is the JSON answer, and one End packet. A connection that ends earlier has ended the action: nothing else tells the server
// that the client is gone, so the server pings while it has nothing to send.
//
// Client runs on any system, the server on Linux.
package control
