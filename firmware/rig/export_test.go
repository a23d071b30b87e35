package rig

// SampleArchive is an archive and the names in it.
func SampleArchive() (archive []byte, names []string) {
	a := newArchive()
	a.file("/bin/a", 0o755, []byte("odd"))
	a.link("/bin/sh", "a")
	a.file("/etc/empty", 0o600, nil)
	a.dir("/var/lib")
	return a.bytes(), []string{"bin", "bin/a", "bin/sh", "etc", "etc/empty", "var", "var/lib"}
}
