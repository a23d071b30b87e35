package linktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
)

// connectTime is how long a connection may take to say CONNECT.
const connectTime = 10 * time.Second

// read takes what a client sends until its connection is over, then publishes its will.
func (c *client) read() {
	defer c.end()
	if !c.login() {
		return
	}
	for {
		if c.connect.Keepalive > 0 {
			_ = c.conn.SetReadDeadline(time.Now().Add(grace(c.connect.Keepalive)))
		}
		p, err := packets.ReadPacket(c.conn)
		if c.halted() {
			<-c.gone // half-open: what comes is not looked at
			return
		}
		if err != nil || !c.take(p) {
			return
		}
	}
}

// login reads CONNECT and takes the place of another client with the same id.
func (c *client) login() bool {
	b := c.b
	_ = c.conn.SetReadDeadline(time.Now().Add(connectTime))
	p, err := packets.ReadPacket(c.conn)
	if err != nil {
		return false
	}
	connect, ok := p.(*packets.ConnectPacket)
	if !ok {
		return c.complain("the first packet is not CONNECT")
	}
	b.mu.Lock()
	b.connects = append(b.connects, connect)
	b.mu.Unlock()
	if connect.ProtocolName != "MQTT" || connect.ProtocolVersion != 4 {
		return c.complain("protocol %s %d is not MQTT 3.1.1", connect.ProtocolName, connect.ProtocolVersion)
	}
	code := byte(packets.Accepted)
	if b.Connect != nil {
		code = b.Connect(connect)
	}
	ack := packets.NewControlPacket(packets.Connack).(*packets.ConnackPacket)
	ack.ReturnCode = code
	if code != packets.Accepted {
		_ = ack.Write(c.conn)
		return false
	}
	b.mu.Lock()
	old := b.clients[connect.ClientIdentifier]
	b.mu.Unlock()
	if old != nil {
		old.hangUp()
	}
	b.mu.Lock()
	c.id, c.connect = connect.ClientIdentifier, connect
	b.clients[c.id] = c
	c.queue(ack)
	b.mu.Unlock()
	return true
}

// take acts on one packet and tells whether the connection goes on.
func (c *client) take(p packets.ControlPacket) bool {
	switch p := p.(type) {
	case *packets.PublishPacket:
		return c.takePublish(p)
	case *packets.SubscribePacket:
		return c.takeSubscribe(p)
	case *packets.PubackPacket:
		c.b.mu.Lock()
		defer c.b.mu.Unlock()
		if !c.owed[p.MessageID] {
			if c.b.Duplicate { // both were acknowledged
				return true
			}
			c.b.complaints = append(c.b.complaints, fmt.Sprintf("PUBACK %d acknowledges nothing", p.MessageID))
			return false
		}
		delete(c.owed, p.MessageID)
		c.b.unacked--
		return true
	case *packets.PingreqPacket:
		c.reply(packets.NewControlPacket(packets.Pingresp))
		return true
	case *packets.DisconnectPacket:
		c.b.mu.Lock()
		c.clean = true
		c.b.mu.Unlock()
		return false
	}
	return c.complain("%T has no place here", p)
}

func (c *client) takePublish(p *packets.PublishPacket) bool {
	b := c.b
	if strings.ContainsAny(p.TopicName, "+# *>\x00") || p.TopicName == "" {
		return c.complain("topic %q", p.TopicName)
	}
	if p.Qos > 1 || p.Qos == 1 && p.MessageID == 0 {
		return c.complain("publish with QoS %d and id %d", p.Qos, p.MessageID)
	}
	if b.MaxPacket > 0 && len(p.Payload) > b.MaxPacket {
		return c.complain("payload of %d bytes", len(p.Payload))
	}
	m := Publish{Client: c.id, Topic: p.TopicName, QoS: p.Qos, Retained: p.Retain, Payload: p.Payload}
	verdict := Forward
	if b.Judge != nil {
		verdict = b.Judge(m)
	}
	if p.Qos == 1 && (verdict == Forward || verdict == AckOnly || verdict == AckAndHangUp) {
		ack := packets.NewControlPacket(packets.Puback).(*packets.PubackPacket)
		ack.MessageID = p.MessageID
		c.reply(ack)
	}
	if verdict == Forward || verdict == ForwardMute {
		b.forward(m, true)
		return true
	}
	b.mu.Lock()
	b.published = append(b.published, m)
	b.mu.Unlock()
	if verdict == AckAndHangUp {
		time.Sleep(10 * time.Millisecond) // the acknowledgement goes out first
	}
	return verdict != HangUp && verdict != AckAndHangUp
}

func (c *client) takeSubscribe(p *packets.SubscribePacket) bool {
	b := c.b
	b.mu.Lock()
	defer b.mu.Unlock()
	ack := packets.NewControlPacket(packets.Suback).(*packets.SubackPacket)
	ack.MessageID, ack.ReturnCodes = p.MessageID, p.Qoss
	if b.Suback != nil {
		ack.ReturnCodes = b.Suback
	}
	for i, filter := range p.Topics {
		if i < len(ack.ReturnCodes) && ack.ReturnCodes[i] <= 2 {
			c.filter[filter] = ack.ReturnCodes[i]
		}
	}
	c.queue(ack)
	for filter, qos := range c.filter {
		for topic, payload := range b.retained {
			if matches(filter, topic) {
				c.push(Publish{Topic: topic, Retained: true, Payload: payload}, min(qos, 1))
			}
		}
	}
	return true
}

func (c *client) reply(p packets.ControlPacket) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.queue(p)
}

// write sends what is queued.
func (c *client) write() {
	for {
		select {
		case p := <-c.out:
			if c.halted() {
				<-c.gone
				return
			}
			if err := p.Write(c.conn); err != nil {
				return
			}
		case <-c.gone:
			return
		}
	}
}

// halted tells whether the connection is half-open.
func (c *client) halted() bool {
	select {
	case <-c.stopped:
		return true
	default:
		return false
	}
}

// complain notes what a client did wrong and ends its connection.
func (c *client) complain(format string, args ...any) bool {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.b.complaints = append(c.b.complaints, fmt.Sprintf(format, args...))
	return false
}

func (c *client) hangUp() {
	c.once.Do(func() {
		close(c.gone)
		c.conn.Close()
	})
}

// end forgets a client and says its will.
func (c *client) end() {
	c.hangUp()
	b := c.b
	b.mu.Lock()
	for range c.owed {
		b.unacked--
	}
	if b.clients[c.id] == c {
		delete(b.clients, c.id)
	}
	will := c.connect != nil && c.connect.WillFlag && !c.clean
	b.mu.Unlock()
	if will {
		b.forward(Publish{
			Client: c.id, Topic: c.connect.WillTopic, QoS: c.connect.WillQos,
			Retained: c.connect.WillRetain, Payload: c.connect.WillMessage, Will: true,
		}, true)
	}
}
