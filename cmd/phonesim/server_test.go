package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"phonerack/usb/adb"
	"phonerack/usb/phonesim/android/apk/apktest"
)

// A host installs the UiAutomator2 server, starts it and speaks to it, over the wire only.
func TestServerOverTheWire(t *testing.T) {
	p := start(t, "--listen", "127.0.0.1:0", "--android", "11", "--size", "480x800", "--android-server-slow-start", "1ms")
	nc, err := net.Dial("tcp", p.expectLine(t, "listening on "))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := adb.Connect(ctx, adb.NewStreamLink(nc), adb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, tests := apktest.Server()
	for _, file := range [][]byte{apktest.Build(server), apktest.Build(tests)} {
		s, err := conn.Open(ctx, fmt.Sprintf("exec:cmd 'package' 'install' '-r' '-t' '-S' '%d'", len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write(file); err != nil {
			t.Fatal(err)
		}
		if out, err := io.ReadAll(s); string(out) != "Success\n" {
			t.Fatalf("%q, %v", out, err)
		}
		s.Close()
	}
	if _, err := conn.Open(ctx, "tcp:6790"); !errors.Is(err, adb.ErrRefused) {
		t.Errorf("a port where nobody listens: %v", err)
	}
	s, err := conn.Open(ctx, "exec:am instrument -w io.appium.uiautomator2.server.test/androidx.test.runner.AndroidJUnitRunner")
	if err != nil {
		t.Fatal(err)
	}
	var port *adb.Stream
	for port == nil {
		if port, err = conn.Open(ctx, "tcp:6790"); err != nil && !errors.Is(err, adb.ErrRefused) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := io.WriteString(port, "GET /status HTTP/1.1\r\nHost: phone\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(port)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+fmt.Sprint(http.StatusOK)) || !strings.Contains(string(answer), `"ready":true`) {
		t.Errorf("%q, %v", answer, err)
	}
	idle, err := conn.Open(ctx, "tcp:6790")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := io.ReadAll(idle); err != nil {
		t.Errorf("a connection of a killed server: %v", err)
	}
	for {
		port, err := conn.Open(ctx, "tcp:6790")
		if errors.Is(err, adb.ErrRefused) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		port.Close()
		time.Sleep(10 * time.Millisecond)
	}
	p.stop()
	p.expectExit(t, 0)
}
