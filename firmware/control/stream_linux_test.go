package control

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"phonerack/firmware/action"
	"phonerack/firmware/action/actiontest"
	"phonerack/firmware/lease"
)

// pipeWriter is a response whose connection is taken over.
type pipeWriter struct {
	http.ResponseWriter
	conn net.Conn
}

func (w pipeWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.conn, bufio.NewReadWriter(bufio.NewReader(w.conn), bufio.NewWriter(w.conn)), nil
}

// The time is real: the pings wait for the stuck packet's lock, which virtual time does not see.
func TestClientThatReadsNothingDoesNotOutlastTheAction(t *testing.T) {
	began := time.Now()
	log := slog.New(slog.DiscardHandler)
	registry := action.New(actiontest.New(), lease.NewTable(lease.Options{Now: func() time.Duration { return time.Since(began) }}), log)
	client, server := net.Pipe()
	defer client.Close()
	request, err := http.NewRequestWithContext(context.WithValue(t.Context(), servingKey{}, t.Context()), http.MethodPost, "http://rackd/", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		shell := action.Definition{Name: "shell", Timeout: 50 * time.Millisecond}
		NewServer(registry, log).stream(pipeWriter{conn: server}, request, action.Actor{Name: "lee", Role: action.Operator}, shell, json.RawMessage(`{"slot":1,"command":"fail"}`))
	}()
	head := bufio.NewReader(client)
	for line := ""; line != "\r\n"; {
		if line, err = head.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the call lasts as long as its client does not read")
		client.Close()
		<-ended
	}
}
