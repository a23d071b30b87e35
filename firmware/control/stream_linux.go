package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"phonerack/firmware/action"
	"phonerack/sync/wire"
)

const (
	pingInterval = 5 * time.Second
	lastWords    = time.Second // for the answer of a call that was cancelled
	lingering    = time.Second // for the client to read the answer while it still sends
)

// stream runs an action over the taken-over connection.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, actor action.Actor, d action.Definition, args json.RawMessage) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.refuse(w, err)
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Time{})
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", upgradeName); err != nil {
		return
	}
	ctx, cancel := called(r)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { conn.SetWriteDeadline(time.Now().Add(lastWords)) })
	defer stop()
	// The action's own time is not that of ctx: without this a client that reads nothing would hold its call for ever.
	over := time.AfterFunc(d.Timeout, func() { conn.SetWriteDeadline(time.Now().Add(lastWords)) })
	defer over.Stop()

	packets := &packetWriter{w: conn}
	in, feed := io.Pipe()
	read := make(chan struct{})
	go func() {
		defer close(read)
		readIn(buffered.Reader, feed)
		cancel(action.ErrCallerGone)             // before the action learns it from its input
		feed.CloseWithError(io.ErrUnexpectedEOF) // without effect after InEnd
	}()
	pinged := make(chan struct{})
	go func() {
		defer close(pinged)
		ping(ctx, cancel, packets)
	}()

	result, err := s.registry.Call(ctx, actor, d.Name, args, action.Pipes{In: in, Out: outlet{packets.as(kindOut), cancel}, Err: outlet{packets.as(kindErr), cancel}})
	in.Close()
	if context.Cause(ctx) != action.ErrCallerGone {
		s.finish(conn, packets, newAnswer(result, stopping(ctx, err)))
	}
	cancel(nil)
	conn.SetReadDeadline(time.Now().Add(lingering))
	<-read
	<-pinged
}

// outlet ends the call when the client takes nothing more.
type outlet struct {
	io.Writer
	cancel context.CancelCauseFunc
}

func (o outlet) Write(data []byte) (int, error) {
	n, err := o.Writer.Write(data)
	if err != nil {
		o.cancel(action.ErrCallerGone)
	}
	return n, err
}

func (s *Server) finish(conn net.Conn, packets *packetWriter, a answer) {
	encoded, err := json.Marshal(a)
	if err != nil {
		encoded, _ = json.Marshal(newAnswer(nil, wire.Refuse(wire.Internal, nil)))
	}
	conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err := errors.Join(packets.send(kindResult, encoded), packets.send(kindEnd, nil)); err != nil {
		s.log.Debug("answer not delivered", "err", err)
	}
}

// readIn feeds the action until the client is gone or breaks the protocol. What an action does not read is thrown away
// once the action has ended.
func readIn(r *bufio.Reader, feed *io.PipeWriter) {
	buf := make([]byte, maxPacket)
	for {
		k, data, err := readPacket(r, buf)
		if err != nil {
			return
		}
		switch k {
		case kindIn:
			if _, err := feed.Write(data); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				return
			}
		case kindInEnd:
			feed.Close()
		default:
			return
		}
	}
}

// ping finds out that the client is gone while the action neither reads nor writes.
func ping(ctx context.Context, cancel context.CancelCauseFunc, packets *packetWriter) {
	tick := time.NewTicker(pingInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := packets.send(kindPing, nil); err != nil {
				cancel(action.ErrCallerGone)
				return
			}
		}
	}
}
