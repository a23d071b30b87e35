package adb

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of a connection. Callers decide on them with errors.Is; the errors
// returned wrap them and say more.
var (
	// ErrDisconnected: the link to the phone ended or failed. Everything on
	// the connection fails with it.
	ErrDisconnected = errors.New("adb: disconnected")
	// ErrUnauthorized: the phone takes none of our keys, and nobody accepted
	// the offered one on its display.
	ErrUnauthorized = errors.New("adb: not authorized by the phone")
	// ErrTimeout: the phone did not answer, or took no data, within a bound of
	// Options. Its Timeout method reports true.
	ErrTimeout error = timeoutError{}
	// ErrRefused: the phone refused to open a service.
	ErrRefused = errors.New("adb: service refused by the phone")
	// ErrStreamClosed: writing to a stream that the phone has closed.
	ErrStreamClosed = errors.New("adb: stream closed by the phone")
	// ErrProtocol: the peer broke a rule of the protocol.
	ErrProtocol = errors.New("adb: protocol violation")
	// ErrTLS: the phone asks for TLS (Wi-Fi debugging), which is not supported.
	ErrTLS = errors.New("adb: the phone asks for TLS, which is not supported")
	// ErrTooLarge: output, a listing, an answer or the name of a service (a
	// command, with its text) exceeded its bound.
	ErrTooLarge = errors.New("adb: larger than the allowed bound")
	// ErrUnsupported: the phone lacks a feature that the call needs.
	ErrUnsupported = errors.New("adb: not supported by this phone")
)

// Errors of raw endpoints. Implementations of [Endpoints] map what their USB
// library reports to them.
var (
	// ErrNoMemory: the kernel has no buffer memory left for the transfer
	// (usbfs_memory_mb). Nothing was transferred beyond the returned count.
	ErrNoMemory = errors.New("adb: no memory for the USB transfer")
	// ErrStall: the phone halted the endpoint.
	ErrStall = errors.New("adb: endpoint stalled")
	// ErrOverflow: the phone sent a packet larger than the buffer; it is lost.
	ErrOverflow = errors.New("adb: USB overflow")
)

// Errors of opening a phone. Whoever opens links says these.
var (
	// ErrHeld: another process holds the ADB interface, or a kernel driver does.
	ErrHeld = errors.New("the ADB interface is held by another process (is an adb server running?)")
	// ErrDenied: this process may not open the device.
	ErrDenied = errors.New("no permission to open the USB device (udev rule or group missing)")
)

type timeoutError struct{}

func (timeoutError) Error() string   { return "adb: timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// PacketError says which part of a packet was wrong. It is an [ErrProtocol].
type PacketError struct {
	Command Command // zero if it could not be read
	Field   string  // "size", "magic", "length", "checksum" or "payload"
	Got     uint64
	Want    uint64 // for "length": the most that was allowed
}

// Error implements error.
func (e *PacketError) Error() string {
	var b strings.Builder
	b.WriteString("adb: bad packet")
	if e.Command != 0 {
		fmt.Fprintf(&b, " %s", e.Command)
	}
	switch e.Field {
	case "size":
		fmt.Fprintf(&b, ": %d bytes where a header of %d was expected", e.Got, e.Want)
	case "length":
		fmt.Fprintf(&b, ": payload of %d bytes, at most %d allowed", e.Got, e.Want)
	case "payload":
		fmt.Fprintf(&b, ": %d bytes of payload where %d were announced", e.Got, e.Want)
	default:
		fmt.Fprintf(&b, ": %s 0x%08x, want 0x%08x", e.Field, e.Got, e.Want)
	}
	return b.String()
}

// Unwrap makes a PacketError an ErrProtocol.
func (e *PacketError) Unwrap() error { return ErrProtocol }

// protocolError wraps ErrProtocol with what happened.
func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// disconnected wraps err as the end of a connection.
func disconnected(err error) error {
	if err == nil {
		return ErrDisconnected
	}
	if errors.Is(err, ErrDisconnected) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrDisconnected, err)
}
