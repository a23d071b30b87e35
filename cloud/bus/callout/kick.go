package callout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"phonerack/sync/wire"
)

const (
	quiet     = 500 * time.Millisecond // no further server answers: all have
	kickLimit = 5 * time.Second
)

// connections is what is read of a server's answer about its connections.
type connections struct {
	Server struct {
		ID string `json:"id"`
	} `json:"server"`
	Data struct {
		Connections []struct {
			CID uint64 `json:"cid"`
		} `json:"connections"`
	} `json:"data"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

// Kick implements bus.Kicker on a cluster: every server is asked which connections have the rack's client id, and told to
// end them. It takes half a second longer than the slowest server. A server that cannot be reached keeps the
// connection; frames on it fail at their MACs.
func (s *Service) Kick(ctx context.Context, rack string) error {
	if s.system == nil {
		return fmt.Errorf("kick %s: %w: there is no password of the system account", rack, errors.ErrUnsupported)
	}
	if !wire.ValidID(rack) {
		return fmt.Errorf("kick: rack %.80q is no id", rack)
	}
	ctx, cancel := context.WithTimeout(ctx, kickLimit)
	defer cancel()
	inbox := nats.NewInbox()
	sub, err := s.system.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("kick %s: %w", rack, err)
	}
	defer sub.Unsubscribe()
	question, _ := json.Marshal(map[string]string{"mqtt_client": rack})
	if err := s.system.PublishRequest("$SYS.REQ.SERVER.PING.CONNZ", inbox, question); err != nil {
		return fmt.Errorf("kick %s: %w", rack, err)
	}
	for servers := 0; ; servers++ {
		wait, cancel := context.WithTimeout(ctx, quiet)
		m, err := sub.NextMsgWithContext(wait)
		cancel()
		switch {
		case err == nil:
			if err := s.end(ctx, m.Data); err != nil {
				return fmt.Errorf("kick %s: %w", rack, err)
			}
		case ctx.Err() != nil || servers == 0:
			return fmt.Errorf("kick %s: no answer of a server: %w", rack, err)
		default:
			return nil
		}
	}
}

// end tells one server to end what it named, and waits for its word.
func (s *Service) end(ctx context.Context, answer []byte) error {
	var c connections
	if err := json.Unmarshal(answer, &c); err != nil {
		return err
	}
	if c.Error != nil {
		return errors.New(c.Error.Description)
	}
	for _, conn := range c.Data.Connections {
		order, _ := json.Marshal(map[string]uint64{"cid": conn.CID})
		// An error in the answer means that the connection has ended by itself.
		if _, err := s.system.RequestWithContext(ctx, "$SYS.REQ.SERVER."+c.Server.ID+".KICK", order); err != nil {
			return err
		}
	}
	return nil
}
