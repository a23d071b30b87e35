// Package callout decides for NATS servers which racks may connect.
//
// A server whose configuration comes from bus.NATSConfig asks on a subject of an account of its own who a client is; a
// [Service] asks the authenticator and answers with a signed permission. It sees the client id, which a rack has to
// have as its name: else any rack could push another one off. The same service serves the embedded server and each
// replica beside a cluster; docs/decisions/0011 tells why it is this way.
package callout
