package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"phonerack/firmware/action"
)

// DefaultSocket is where rackd listens unless its configuration says otherwise.
const DefaultSocket = "/run/rackd/rackd.sock"

// ErrUnreachable means that no rackd answered, or that its connection ended in the middle.
var ErrUnreachable = errors.New("rackd cannot be reached")

// Client asks a rackd on this machine. Its methods are safe for concurrent use; each call is a connection of its own.
type Client struct {
	Socket string // path; "" means DefaultSocket
}

const dialTimeout = 5 * time.Second

// Definitions lists the actions that the rackd knows.
func (c *Client) Definitions(ctx context.Context) ([]action.Definition, error) {
	var all []action.Definition
	return all, c.exchange(ctx, http.MethodGet, actionsPath, nil, &all)
}

// Call runs an action without streams. The error is a *wire.Refusal, or ErrUnreachable; result may be nil.
func (c *Client) Call(ctx context.Context, name string, args, result any) error {
	return c.exchange(ctx, http.MethodPost, actionsPath+"/"+name, args, result)
}

func (c *Client) exchange(ctx context.Context, method, path string, args, result any) error {
	conn, response, err := c.request(ctx, method, path, args, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	return readAnswer(response, result)
}

// request sends one request and returns its connection; the caller closes it. It ends with ctx.
func (c *Client) request(ctx context.Context, method, path string, args any, header http.Header) (*clientConn, *http.Response, error) {
	var body bytes.Buffer
	if args != nil {
		if err := json.NewEncoder(&body).Encode(args); err != nil {
			return nil, nil, fmt.Errorf("encode the arguments: %w", err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://rackd"+path, &body)
	if err != nil {
		return nil, nil, fmt.Errorf("ask rackd: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		request.Header[k] = v
	}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := request.Write(conn); err != nil {
		conn.Close()
		return nil, nil, unreachable(err)
	}
	response, err := http.ReadResponse(conn.in, request)
	if err != nil {
		conn.Close()
		return nil, nil, unreachable(err)
	}
	return conn, response, nil
}

// A clientConn is one call's connection. It is cut when the call's context ends.
type clientConn struct {
	net.Conn
	in   *bufio.Reader
	stop func() bool
}

func (c *clientConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (c *Client) dial(ctx context.Context) (*clientConn, error) {
	socket := c.Socket
	if socket == "" {
		socket = DefaultSocket
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrUnreachable, socket, errors.Unwrap(err))
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	return &clientConn{conn, bufio.NewReader(conn), stop}, nil
}

func unreachable(err error) error {
	return fmt.Errorf("%w: the connection ended in the middle: %w", ErrUnreachable, err)
}

func readAnswer(response *http.Response, result any) error {
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return unreachable(err)
	}
	return decodeAnswer(raw, result)
}

func decodeAnswer(raw []byte, result any) error {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("%w: the answer is not one of rackd: %w", ErrUnreachable, err)
	}
	return a.into(result)
}

// Stream runs an action with streams. It reads pipes.In until its end or the action's, whichever comes first; a read
// that blocks is not waited for. An error of reading pipes.In or of writing the others ends the action and is returned.
func (c *Client) Stream(ctx context.Context, name string, args any, pipes action.Pipes, result any) error {
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgradeName}}
	conn, response, err := c.request(ctx, http.MethodPost, actionsPath+"/"+name, args, header)
	if err != nil {
		return err
	}
	defer conn.Close()
	if response.StatusCode != http.StatusSwitchingProtocols {
		return readAnswer(response, result)
	}
	sent := make(chan error, 1)
	go func() {
		err := sendIn(conn, pipes.In)
		sent <- err
		if err != nil {
			conn.Close() // the server takes an end without InEnd for an abort
		}
	}()
	raw, err := receive(conn.in, pipes)
	if err == nil {
		return decodeAnswer(raw, result)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case readErr := <-sent:
		if e, ok := errors.AsType[inputError](readErr); ok {
			return e.error
		}
	default:
	}
	return err
}

// inputError is an error of the caller's reader.
type inputError struct{ error }

func sendIn(conn net.Conn, in io.Reader) error {
	packets := &packetWriter{w: conn}
	if in != nil {
		buf := make([]byte, maxPacket)
		for {
			n, err := in.Read(buf)
			if n > 0 {
				if err := packets.send(kindIn, buf[:n]); err != nil {
					return err
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return inputError{err}
			}
		}
	}
	return packets.send(kindInEnd, nil)
}

// receive hands out the server's packets and returns the answer.
func receive(r *bufio.Reader, pipes action.Pipes) ([]byte, error) {
	buf := make([]byte, maxPacket)
	var result []byte
	for {
		k, data, err := readPacket(r, buf)
		if err != nil {
			return nil, unreachable(err)
		}
		switch k {
		case kindOut:
			err = writeTo(pipes.Out, data)
		case kindErr:
			err = writeTo(pipes.Err, data)
		case kindResult:
			if result = append(result, data...); len(result) > maxAnswer {
				return nil, fmt.Errorf("%w: the answer is too long", ErrUnreachable)
			}
		case kindEnd:
			return result, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func writeTo(w io.Writer, data []byte) error {
	if w == nil {
		return nil
	}
	_, err := w.Write(data)
	return err
}
