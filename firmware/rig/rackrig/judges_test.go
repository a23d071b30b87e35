package rackrig_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/rackrig"
	"phonerack/usb/adb"
	"phonerack/usb/phonesim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// keyByAdb makes a key with the real adb and returns it with the public line that adb wrote beside it.
func keyByAdb(t *testing.T) (*adb.Key, string) {
	t.Helper()
	client, err := rig.AdbPath()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "adbkey")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, client, "keygen", file).CombinedOutput(); err != nil {
		t.Fatalf("adb keygen: %v\n%s", err, out)
	}
	private, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := adb.ParseKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return key, string(public)
}

// strict is a phone that wants a key, and a way to connect to it with some keys.
func strict(t *testing.T, auth phonesim.Auth) (*phonesim.Phone, func(wait time.Duration, keys ...*adb.Key) error) {
	t.Helper()
	auth.Required = true
	p, err := rackrig.Simulate(rackrig.PhoneSpec{Serial: "SIM0001", Port: "1-1"})
	if err != nil {
		t.Fatal(err)
	}
	usb, err := phonesim.New(phonesim.Config{Serial: "SIM0001", System: p.Android, Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	return usb, func(wait time.Duration, keys ...*adb.Key) error {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		host, device := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- usb.ServeStream(t.Context(), device) }()
		defer func() { <-served }()
		c, err := adb.Connect(ctx, adb.NewStreamLink(host), adb.Options{Keys: keys})
		if err != nil {
			return err
		}
		defer c.Close()
		if r, err := c.Shell(ctx, "exit 4"); err != nil || r.ExitCode != 4 {
			t.Errorf("shell after authentication: %+v, %v", r, err)
		}
		return nil
	}
}

// TestOurHostBeforeTheVerifierThatJudgesAdb proves our keys and signatures to the verifier that the real adb passes too
// (usb/phonesim), with a key that adb itself has made.
func TestOurHostBeforeTheVerifierThatJudgesAdb(t *testing.T) {
	key, public := keyByAdb(t)
	stranger, err := adb.NewKey()
	if err != nil {
		t.Fatal(err)
	}

	t.Run("a key made by adb keygen, known by the line that adb wrote", func(t *testing.T) {
		_, connect := strict(t, phonesim.Auth{Keys: []string{public}})
		if err := connect(10*time.Second, key); err != nil {
			t.Error(err)
		}
	})
	t.Run("the right key is the last of several", func(t *testing.T) {
		_, connect := strict(t, phonesim.Auth{Keys: []string{public}})
		if err := connect(10*time.Second, stranger, key); err != nil {
			t.Error(err)
		}
	})
	t.Run("a wrong key and nobody to accept it", func(t *testing.T) {
		phone, connect := strict(t, phonesim.Auth{Keys: []string{public}})
		if err := connect(time.Second, stranger); !errors.Is(err, adb.ErrUnauthorized) {
			t.Errorf("got %v, want %v", err, adb.ErrUnauthorized)
		}
		if len(phone.Violations()) > 0 {
			t.Errorf("rules broken: %v", phone.Violations())
		}
	})
	t.Run("a late prompt", func(t *testing.T) {
		_, connect := strict(t, phonesim.Auth{AcceptAfter: 500 * time.Millisecond, AcceptAlways: true})
		if err := connect(10*time.Second, stranger); err != nil {
			t.Error(err)
		}
		begin := time.Now()
		if err := connect(10*time.Second, stranger); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 400*time.Millisecond {
			t.Errorf("a key that was accepted for ever was asked about again: %v", d)
		}
	})
}
