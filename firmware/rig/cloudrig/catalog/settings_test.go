package catalog_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"phonerack/cloud/fleet"
	"phonerack/firmware/rig/cloudrig/sitetest"
	"phonerack/sync/wire"
	"phonerack/usb/phonesim/android/apk"
	"phonerack/usb/phonesim/android/apk/apktest"
)

// host is the rack as the cloud shows it.
func (s *site) host() (h fleet.Host) {
	s.T.Helper()
	s.Do(&h, "host", "show", s.ID)
	return h
}

// settled waits until the rack has applied a version, and is present as said.
func (s *site) settled(version int64, presence string) {
	s.T.Helper()
	s.Await("settings applied", func() (bool, any) {
		h := s.host()
		return h.Settings != nil && h.Settings.Version == version && h.Settings.Applied == version && h.Presence == presence, h
	})
}

// applied counts how often rackd has said that it applied settings.
func (s *site) applied() int {
	return strings.Count(s.Rack.Log(), "the cloud's configuration is applied")
}

func TestSettingsAndFilesFromTheOperatorToThePhone(t *testing.T) {
	s := newSite(t)
	var v fleet.Configuration
	s.in("settings reach the rack, which says so", func(t *testing.T) {
		if h := s.host(); h.Settings != nil {
			t.Errorf("%+v", h.Settings)
		}
		s.Do(&v, "host", "configure", s.ID, "--set", "claims.paused=true", "--set", "log.level=debug")
		s.settled(v.Version, "draining")
		if !strings.Contains(s.Rack.Log(), "level=DEBUG") {
			t.Error("nothing is logged at the new level")
		}
	})
	s.in("a restarted rack has them before its cloud is there, and a restarted cloud still wants them", func(t *testing.T) {
		before := s.applied()
		s.Cloud.Kill()
		s.Rack.Kill()
		s.restart()
		if got := s.applied(); got != before+1 {
			t.Errorf("applied %d times, before %d", got, before)
		}
		s.Must(s.Cloud.Restart(s.Ctx))
		s.ready()
		s.settled(v.Version, "draining")
	})
	s.in("a rack that was away gets the newest ones", func(t *testing.T) {
		s.Rack.Kill()
		s.Do(&v, "host", "configure", s.ID, "--unset", "log.level", "--set", "heartbeat.seconds=6")
		if h := s.host(); h.Settings == nil || h.Settings.Version != v.Version || h.Settings.Applied == v.Version {
			t.Errorf("%+v", h.Settings)
		}
		s.restart()
		s.ready()
		s.settled(v.Version, "draining")
	})
	s.in("a file comes with its task to the phone, and to nobody else", s.fileOfATask)
	s.in("a revoked rack has no settings", func(t *testing.T) {
		s.Do(nil, "host", "revoke", s.ID)
		if h := s.host(); h.Settings != nil {
			t.Errorf("%+v", h.Settings)
		}
		if said := s.refused("host", "configure", s.ID, "--set", "claims.paused=true"); !strings.Contains(said, "revoked") {
			t.Errorf("%s", said)
		}
	})
}

// packages are the installed packages of the phone.
func (s *site) packages() string {
	s.T.Helper()
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(s.Ctx, sitetest.Soon)
	defer cancel()
	if exit := s.Phones[0].Android.Run(ctx, "pm list packages", nil, &out, &out); exit != 0 {
		s.T.Fatalf("pm: %s", out.String())
	}
	return out.String()
}

func (s *site) fileOfATask(t *testing.T) {
	app := filepath.Join(t.TempDir(), "app.apk")
	s.Must(os.WriteFile(app, apktest.Build(apk.Manifest{Package: "com.example.brought", VersionCode: 1, VersionName: "1", MinSDK: 21, TargetSDK: 34}), 0o600))
	var task fleet.Task
	s.Do(&task, "task", "submit", "--goal", "install", "--rack", s.ID, "--slot", "1", "--permission", "install", "--input", "app.apk="+app)
	if len(task.Inputs) != 1 || task.Inputs[0].Name != "app.apk" {
		t.Fatalf("%+v", task.Inputs)
	}
	foreign, err := s.Cloud.AddRack(s.Ctx, "foreign")
	s.Must(err)
	r := join(t, s, foreign)
	asked := func(hash string) {
		t.Helper()
		if _, err := r.ask(wire.TypeBlobGet, wire.BlobGet{SHA256: hash}); !wire.Is(err, wire.NotFound) {
			t.Errorf("a rack without the lease got %v", err)
		}
	}
	asked(task.Inputs[0].SHA256)
	if got := s.task(task.TaskID); got.State != wire.TaskQueued {
		t.Errorf("a rack that is draining has taken %+v", got)
	}
	s.Do(nil, "host", "configure", s.ID, "--set", "claims.paused=false")
	s.Await("the app on the phone", func() (bool, any) {
		return strings.Contains(s.packages(), "com.example.brought"), s.task(task.TaskID)
	})
	s.Await("the end of the task", func() (bool, any) {
		task = s.task(task.TaskID)
		return task.State.Over(), task
	})
	if task.State != wire.TaskSucceeded {
		t.Errorf("%+v", task)
	}
	asked(task.Inputs[0].SHA256)
	asked(strings.Repeat("0", 64))

	unknown := filepath.Join(t.TempDir(), "task.json")
	s.Must(os.WriteFile(unknown, []byte(`{"goal":"install","target":{"rack":"`+s.ID+`"},"inputs":[{"name":"app.apk","sha256":"`+strings.Repeat("0", 64)+`","size":9}]}`), 0o600))
	if said := s.refused("task", "submit", "--file", unknown); strings.Count(said, "\n") != 0 {
		t.Errorf("%s", said)
	}
}

func (s *site) task(id string) (v fleet.Task) {
	s.T.Helper()
	s.Do(&v, "task", "show", id)
	return v
}
