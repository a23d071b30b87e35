package firmware

import "phonerack/firmware/lease"

// LeasesOf lets a test be somebody else: whoever connects to the control socket is the test's own user.
func LeasesOf(r *Rack) *lease.Table { return r.leases }
