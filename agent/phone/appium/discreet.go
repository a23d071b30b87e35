package appium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"phonerack/agent/phone"
	"phonerack/usb/adb"
)

// What is typed or copied may be a password, and errors go to people, planners
// and logs. What the phone says about such a text may repeat it, or be it: an
// error then says what was wrong in our own words only.

// plainErrors are those whose words are our own and which callers decide on.
var plainErrors = []error{
	context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF,
	adb.ErrDisconnected, adb.ErrTimeout, adb.ErrRefused, adb.ErrStreamClosed, adb.ErrTooLarge,
	phone.ErrMalformed, phone.ErrTooLarge, ErrServer, ErrUiAutomationTaken, ErrNotInstalled,
}

// discreet returns what is known of a failed call without anything that the
// other end said: the status of an answer and those of plainErrors.
func discreet(err error) error {
	var known []error
	for _, plain := range plainErrors {
		if errors.Is(err, plain) {
			known = append(known, plain)
		}
	}
	if answer, ok := errors.AsType[*serverError](err); ok {
		known = append(known, fmt.Errorf("the server answered %d", answer.Status))
	}
	if len(known) == 0 {
		return errors.New("the server gave no answer of its protocol")
	}
	return &kinds{known}
}

// kinds is several errors in one line.
type kinds struct{ errs []error }

// Error implements error.
func (k *kinds) Error() string {
	words := make([]string, len(k.errs))
	for i, err := range k.errs {
		words[i] = err.Error()
	}
	return strings.Join(words, ": ")
}

// Unwrap lets errors.Is find each.
func (k *kinds) Unwrap() []error { return k.errs }
