//go:build !linux

package document

import (
	"context"
	"os"

	"phonerack/agent/document/internal/protocol"
	"phonerack/sync/wire"
)

// errNoLimits is why nothing is read elsewhere: the limits on a child are Linux's.
var errNoLimits = wire.Refuse(wire.Unsupported, map[string]any{"what": "reading documents on another system than Linux"})

func runChild(context.Context, []string, *os.File, protocol.Request, *answer) (end, error) {
	return end{}, errNoLimits
}

func nameless() (*os.File, error) { return nil, errNoLimits }
