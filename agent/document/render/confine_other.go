//go:build !linux

package render

import (
	"errors"
	"os"

	"phonerack/agent/document/internal/protocol"
)

var errNoLimits = errors.New("documents are read on Linux only: the limits are Linux's")

func confine(protocol.Limits) error { return errNoLimits }

func mapDocument(int) ([]byte, error) { return nil, errNoLimits }

func takeStdout() (*os.File, error) { return nil, errNoLimits }
