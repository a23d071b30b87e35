package android

import (
	"strconv"
)

// session is an installation under way.
type session struct {
	options installOptions
	apk     []byte // the base package
	files   int
}

const maxSessions = 50

func (c *call) pmSession(verb string, args []string) int {
	switch verb {
	case "install-create":
		return c.sessionCreate(args)
	case "install-write":
		return c.sessionWrite(args)
	}
	id, _ := strconv.Atoi(lastName(args))
	c.mu.Lock()
	s := c.sessions[id]
	delete(c.sessions, id)
	c.mu.Unlock()
	switch {
	case s == nil:
		return c.noSession(verb, lastName(args))
	case verb == "install-abandon":
		c.printf("Success\n")
		return 0
	case s.files == 0:
		c.printf("Failure [INSTALL_FAILED_INVALID_APK: No packages staged in /data/app/vmdl%d.tmp]\n", id)
		return 1
	}
	return c.finishInstall(s.apk, s.options)
}

func (c *call) noSession(verb, id string) int {
	return c.exception(verb, "java.lang.SecurityException: Caller has no access to session "+id,
		"com.android.server.pm.PackageInstallerService.openSessionInternal(PackageInstallerService.java:812)")
}

func (c *call) sessionCreate(args []string) int {
	o, bad := c.installArguments(args)
	if bad != "" {
		c.errorf("Error: Unknown option: %s\n", bad)
		return 1
	}
	c.mu.Lock()
	id := 100000000 + c.rng.IntN(2000000000)
	full := len(c.sessions) >= maxSessions
	if !full {
		c.sessions[id] = &session{options: o}
	}
	c.mu.Unlock()
	if full {
		return c.exception("install-create", "java.lang.IllegalStateException: Too many active sessions for UID 2000",
			"com.android.server.pm.PackageInstallerService.createSessionInternal(PackageInstallerService.java:702)")
	}
	c.printf("Success: created install session [%d]\n", id)
	return 0
}

func (c *call) sessionWrite(args []string) int {
	o, bad := c.installArguments(args)
	if bad != "" || len(o.rest) < 2 {
		c.errorf("Error: must specify a session and a name\n")
		return 1
	}
	id, _ := strconv.Atoi(o.rest[0])
	c.mu.Lock()
	s := c.sessions[id]
	c.mu.Unlock()
	if s == nil {
		return c.noSession("install-write", o.rest[0])
	}
	path := ""
	if len(o.rest) > 2 {
		path = o.rest[2]
	}
	if (path == "" || path == "-") && o.size < 0 {
		c.errorf("Error: must specify a APK size\n")
		return 1
	}
	data, status := c.packageFile(path, o.size)
	if data == nil {
		return status
	}
	c.mu.Lock()
	if s.files++; s.apk == nil || o.rest[1] == "base.apk" {
		s.apk = data
	}
	c.mu.Unlock()
	c.printf("Success: streamed %d bytes\n", len(data))
	return 0
}
