package phonesim

import "slices"

// release is what the daemon of one Android version can do.
type release struct {
	version    uint32
	maxPayload int // bytes
	features   []string

	needsNUL     bool // OPEN is refused if its destination is not terminated
	doubleClose  bool // CLSE comes twice
	cancelsStale bool // CNXN drops what the previous host has not fetched
}

func (r release) has(feature string) bool { return slices.Contains(r.features, feature) }

// The feature lists follow the order and content of real daemons, less what this one does not do
// (track_app and app_info of the later ones, devraw).
var (
	features7  = []string{"shell_v2", "cmd"}
	features9  = append(slices.Clip(features7), "stat_v2")
	features10 = append(slices.Clip(features9), "fixed_push_mkdir", "apex", "abb")
	features11 = []string{
		"sendrecv_v2_brotli", "remount_shell", "sendrecv_v2", "abb_exec", "fixed_push_mkdir",
		"fixed_push_symlink_timestamp", "abb", "shell_v2", "cmd", "ls_v2", "apex", "stat_v2",
	}
	features12 = append(slices.Clip(features11), "sendrecv_v2_lz4", "sendrecv_v2_zstd", "sendrecv_v2_dry_run_send")
	features14 = []string{
		"shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir", "apex", "abb", "fixed_push_symlink_timestamp",
		"abb_exec", "remount_shell", "sendrecv_v2", "sendrecv_v2_brotli", "sendrecv_v2_lz4", "sendrecv_v2_zstd",
		"sendrecv_v2_dry_run_send", "openscreen_mdns", "devicetracker_proto_format", "delayed_ack",
	}
)

var releases = map[int]release{
	7:  {version: versionSums, maxPayload: 256 << 10, features: features7, needsNUL: true, doubleClose: true},
	8:  {version: versionSums, maxPayload: 256 << 10, features: features9, needsNUL: true, doubleClose: true},
	9:  {version: versionNoSums, maxPayload: 1 << 20, features: features9},
	10: {version: versionNoSums, maxPayload: 1 << 20, features: features10},
	11: {version: versionNoSums, maxPayload: 1 << 20, features: features11},
	12: {version: versionNoSums, maxPayload: 1 << 20, features: features12},
	14: {version: versionNoSums, maxPayload: 1 << 20, features: features14, cancelsStale: true},
	15: {version: versionNoSums, maxPayload: 1 << 20, features: features14, cancelsStale: true},
}
