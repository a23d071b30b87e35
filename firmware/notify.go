package firmware

import (
	"fmt"
	"net"
	"os"
)

// Notify tells systemd a state such as "READY=1" by the protocol of sd_notify(3). It does nothing when nobody asked for
// it: NOTIFY_SOCKET is not set.
func Notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	// A leading @ stands for the abstract namespace, for net as well as for systemd.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
