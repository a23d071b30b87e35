package firmware

// Notify tells systemd a state such as "READY=1" by the protocol of sd_notify(3). It does nothing when nobody asked for
// it: NOTIFY_SOCKET is not set.
func Notify(state string) error { return notifyWith(state, nil) }
