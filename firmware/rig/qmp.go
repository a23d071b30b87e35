package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Event is something QEMU reports by itself, such as SHUTDOWN or WATCHDOG (QEMU documentation, QMP reference).
type Event struct {
	Name string
	Data json.RawMessage
	At   time.Time
}

// Limits on what the monitor may send: the length of a line, and how many events are kept.
const (
	qmpLineLimit  = 4 << 20
	qmpEventLimit = 1000
)

// qmpMessage is any line of the monitor: exactly one of Greeting, Event, Return and Error is there.
type qmpMessage struct {
	Greeting json.RawMessage `json:"QMP"`
	Event    string          `json:"event"`
	Data     json.RawMessage `json:"data"`
	ID       *uint64         `json:"id"`
	Return   json.RawMessage `json:"return"`
	Error    *qmpError       `json:"error"`
}

// qmpError is the monitor's refusal of a command.
type qmpError struct {
	Class string `json:"class"`
	Desc  string `json:"desc"`
}

func (e *qmpError) Error() string { return e.Class + ": " + e.Desc }

// qmp is a connection to QEMU's monitor. Commands may be given by several goroutines.
type qmp struct {
	conn    io.ReadWriteCloser
	stopped chan struct{} // closed by read when it ends

	mu      sync.Mutex // guards all below, and writing to conn
	last    uint64     // id of the last command
	waiting map[uint64]chan qmpMessage
	events  []Event
	err     error // why read has ended
}

// openQMP reads the greeting and leaves negotiation mode. It takes the connection over in any case.
func openQMP(ctx context.Context, conn io.ReadWriteCloser) (*qmp, error) {
	q := &qmp{conn: conn, stopped: make(chan struct{}), waiting: map[uint64]chan qmpMessage{}}
	greeted := make(chan error, 1)
	go q.read(greeted)
	var err error
	select {
	case err = <-greeted:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err == nil {
		err = q.execute(ctx, "qmp_capabilities", nil, nil)
	}
	if err != nil {
		q.close()
		return nil, fmt.Errorf("qmp: %w", err)
	}
	return q, nil
}

// read takes lines until the connection ends or one is not understood. The first must be the greeting.
func (q *qmp) read(greeted chan<- error) {
	lines := bufio.NewScanner(q.conn)
	lines.Buffer(nil, qmpLineLimit)
	err := io.EOF
	first := true
	for lines.Scan() {
		var m qmpMessage
		if err = json.Unmarshal(lines.Bytes(), &m); err == nil {
			err = q.take(m, first)
		}
		if err != nil {
			break
		}
		if first {
			first = false
			greeted <- nil
		}
		err = io.EOF
	}
	if lines.Err() != nil {
		err = lines.Err()
	}
	if first {
		greeted <- err
	}
	q.mu.Lock()
	q.err = err
	q.mu.Unlock()
	close(q.stopped)
}

func (q *qmp) take(m qmpMessage, first bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case first != (m.Greeting != nil):
		return errors.New("the greeting must come first, and once")
	case first:
		return nil
	case m.Event != "":
		if len(q.events) == qmpEventLimit {
			q.events = q.events[1:]
		}
		q.events = append(q.events, Event{m.Event, m.Data, time.Now()})
		return nil
	case m.ID == nil || q.waiting[*m.ID] == nil:
		return errors.New("answer to a command that was not given")
	case (m.Return == nil) == (m.Error == nil):
		return errors.New("answer with neither or both of return and error")
	}
	q.waiting[*m.ID] <- m
	delete(q.waiting, *m.ID)
	return nil
}

// execute gives a command and waits for the answer, which goes into result unless that is nil. A refusal is a *qmpError.
func (q *qmp) execute(ctx context.Context, command string, arguments, result any) error {
	answer := make(chan qmpMessage, 1)
	q.mu.Lock()
	q.last++
	id := q.last
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        uint64 `json:"id"`
	}{command, arguments, id})
	if err == nil {
		q.waiting[id] = answer
		_, err = q.conn.Write(append(line, '\n'))
	}
	q.mu.Unlock()
	if err != nil {
		return fmt.Errorf("qmp %s: %w", command, err)
	}
	var m qmpMessage
	select {
	case m = <-answer:
	case <-q.stopped:
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Errorf("qmp %s: %w", command, q.err)
	case <-ctx.Done(): // the answer, should it still come, is taken and thrown away
		return fmt.Errorf("qmp %s: %w", command, context.Cause(ctx))
	}
	if m.Error != nil {
		return fmt.Errorf("qmp %s: %w", command, m.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Return, result)
}

// list returns the events so far, oldest first.
func (q *qmp) list() []Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]Event(nil), q.events...)
}

// close ends the connection and waits for the reading goroutine.
func (q *qmp) close() {
	q.conn.Close()
	<-q.stopped
}
