package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"phonerack/cloud/bus"
	"phonerack/cloud/bus/bustest"
	"phonerack/sync/wire"
)

// Frames of rackctl pass mosquitto_pub -s and mosquitto_sub -N as they are, zero
// bytes included.
func TestFramesGoThroughMosquittoPubAndSub(t *testing.T) {
	broker := bustest.Mosquitto(t)
	at, err := url.Parse(broker.URLs[0])
	if err != nil {
		t.Fatal(err)
	}
	login := []string{"-h", at.Hostname(), "-p", at.Port(), "-V", "mqttv311", "-u", "r1", "-i", "r1", "-P", bustest.Password("r1"), "-q", "1"}
	secret := secretFile(t, testSecret, 0o600)
	keys, err := wire.DeriveKeys("k1", testSecret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	// Up: a person publishes an event with a picture, the cloud's bus hears it.
	cloud := broker.Open(t, "cloud", bus.Limits{})
	heard := make(chan []byte, 1)
	stop := bustest.Serve(t, cloud, func(_ context.Context, f bus.Frame) { heard <- bytes.Clone(f.Data) }, wire.KindEvent)
	defer stop()
	bustest.Ready(t, cloud)
	up := "pr/v1/" + bustest.Tenant + "/r1/up/event"
	code, frame, errOut := frames(t, []byte(`{"type":"event","body":{"kind":"door","at":1}}`),
		"sign", up, "--secret", secret, "--kid", "k1", "--attach", "screen=image/jpeg="+secretFile(t, []byte("a\x00b\n"), 0o600))
	if code != 0 {
		t.Fatal(errOut)
	}
	pub := exec.CommandContext(ctx, bustest.Program(t, "mosquitto_pub"), append(login, "-t", up, "-s")...)
	pub.Stdin = bytes.NewReader(frame)
	if out, err := pub.CombinedOutput(); err != nil {
		t.Fatalf("mosquitto_pub: %v: %s", err, out)
	}
	select {
	case got := <-heard:
		if !bytes.Equal(got, frame) {
			t.Errorf("%d bytes came of %d", len(got), len(frame))
		}
	case <-ctx.Done():
		t.Fatal("the cloud heard nothing")
	}

	// Down: the cloud says something, a person reads it.
	topic := wire.Topic{Tenant: bustest.Tenant, Rack: "r1", Direction: wire.Down, Kind: wire.KindCommand}
	sub := exec.CommandContext(ctx, bustest.Program(t, "mosquitto_sub"), append(login, "-t", topic.String(), "-N", "-C", "1")...)
	var received bytes.Buffer
	sub.Stdout, sub.Stderr = &received, os.Stderr
	if err := sub.Start(); err != nil {
		t.Fatal(err)
	}
	m, err := wire.NewMessage(wire.TypeExecute, time.Now(), time.Minute, wire.Command{CommandID: "c1", Seq: 1, Name: "ping"})
	if err != nil {
		t.Fatal(err)
	}
	down, err := wire.Seal(topic, keys, m)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sub.Wait() }()
	for waiting := true; waiting; { // until the subscription is there
		if err := cloud.Publish(ctx, topic, down); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("mosquitto_sub: %v", err)
			}
			waiting = false
		case <-time.After(200 * time.Millisecond):
		}
	}
	code, out, errOut := frames(t, received.Bytes(), "open", topic.String(), "--secret", secret, "--kid", "k1")
	var opened wire.Message
	if code != 0 || json.Unmarshal(out, &opened) != nil || opened.ID != m.ID {
		t.Errorf("opened %s, %s", out, errOut)
	}
}
