package frame

import (
	"errors"
	"fmt"
)

// Reading fails with one of these, wrapped with what was being read.
var (
	// ErrEmpty means that there are no pixels.
	ErrEmpty = errors.New("the picture is empty")

	// ErrTruncated means that a stream ended before its end.
	ErrTruncated = errors.New("the answer is truncated")

	// ErrTooLarge means that a picture or its stream is larger than its bound.
	ErrTooLarge = errors.New("the answer is too large")

	// ErrMalformed means that a stream has not the form it should have.
	ErrMalformed = errors.New("the answer cannot be understood")

	// ErrStalled means that a stream brought nothing for too long, or took too long
	// as a whole.
	ErrStalled = errors.New("the phone stopped sending")

	// ErrBusy means that no buffer set was free for as long as the context lasted.
	// It says nothing about the stream.
	ErrBusy = errors.New("too many pictures are being read")
)

// HeaderError means that a raw screenshot was taken to have the other header
// than it has. Reading one again with Options.Header set to Fits succeeds. It
// is an ErrMalformed.
type HeaderError struct {
	Fits int // bytes of the header with which the length would be right
}

func (e *HeaderError) Error() string {
	return fmt.Sprintf("its length fits a header of %d bytes", e.Fits)
}

func (e *HeaderError) Unwrap() error { return ErrMalformed }
