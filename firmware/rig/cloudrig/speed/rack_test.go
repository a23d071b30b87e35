package speed

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"phonerack/sync/wire"
)

const screenBytes = 100 << 10

// screen looks like a JPEG from outside and cannot be compressed.
var screen = func() []byte {
	b := make([]byte, screenBytes)
	rand.Read(b)
	copy(b, []byte{0xFF, 0xD8, 0xFF, 0xE0})
	return b
}()

// tools are as many as a rack offers.
var tools = func() []wire.PlanTool {
	list := make([]wire.PlanTool, 20)
	for i := range list {
		list[i] = wire.PlanTool{
			Name: fmt.Sprintf("tool_%d", i), Description: "Does one thing with one element of the screen, waits until the screen is still, and tells what has changed.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"element":{"type":"integer","description":"index of the element"},` +
				`"text":{"type":"string"},"reason":{"type":"string"}},"required":["element"],"additionalProperties":false}`),
		}
	}
	return list
}()

var (
	systemPrompt = strings.Repeat("You work a phone. One call of one tool in each turn. ", 40)
	userPrompt   = strings.Repeat("[17] edit \"Search\" focused clickable at 24,180 to 1056,300\n", 140)
)

// rack is an MQTT client with a rack's credentials.
type rack struct {
	wire.Bundle
	keys   wire.Keys
	client mqtt.Client
	got    chan []byte // frames of dn/+

	session uint64
	nonce   string
	task    string
	attempt int
	asked   int // plan requests so far
}

// sessions counts the connects: a later one of a rack has a higher number.
var sessions atomic.Uint64

// connect connects to a broker by its URL and hears its dn topics, as a rack does.
func connect(bundle wire.Bundle, url string) (*rack, error) {
	keys, err := bundle.Keys()
	if err != nil {
		return nil, err
	}
	r := &rack{Bundle: bundle, keys: keys, got: make(chan []byte, 64), session: sessions.Add(1)}
	o := mqtt.NewClientOptions().AddBroker(url).SetClientID(bundle.Rack).SetUsername(bundle.Rack).SetPassword(bundle.BrokerPassword)
	o.SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetKeepAlive(20 * time.Second).SetConnectTimeout(patience)
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		select {
		case r.got <- m.Payload():
		default: // nobody reads any more
		}
	})
	will, err := r.seal(wire.KindState, wire.TypeState, wire.State{State: wire.Offline, Generation: 1, Session: r.session})
	if err != nil {
		return nil, err
	}
	o.SetBinaryWill(r.topic(wire.KindState).String(), will, 1, true)
	if strings.HasPrefix(url, "ssl:") {
		if o.TLSConfig, err = security(bundle); err != nil {
			return nil, err
		}
	}
	r.client = mqtt.NewClient(o)
	if err := await(r.client.Connect()); err != nil {
		return nil, err
	}
	return r, await(r.client.Subscribe(wire.DownFilter(r.Tenant, r.Rack), 1, nil))
}

// security is what a rack shows and whom it believes.
func security(bundle wire.Bundle) (*tls.Config, error) {
	own, err := tls.X509KeyPair([]byte(bundle.Certificate), []byte(bundle.Key))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(bundle.CA))
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, err
}

func await(t mqtt.Token) error {
	if !t.WaitTimeout(patience) {
		return errors.New("the broker does not answer")
	}
	return t.Error()
}

func (r *rack) leave() { r.client.Disconnect(100) }

func (r *rack) topic(k wire.Kind) wire.Topic {
	return wire.Topic{Tenant: r.Tenant, Rack: r.Rack, Direction: wire.Up, Kind: k}
}

func (r *rack) seal(k wire.Kind, t wire.Type, body any) ([]byte, error) {
	life := 4 * time.Minute
	if t == wire.TypeState {
		life = 0
	}
	m, err := wire.NewMessage(t, time.Now(), life, body)
	if err != nil {
		return nil, err
	}
	m.Sess = r.nonce
	if t == wire.TypePlanRequest {
		m.Attach(wire.ScreenAttachment, "image/jpeg", screen)
	}
	return wire.Seal(r.topic(k), r.keys, m)
}

// ask sends a request and reads the body of its answer.
func (r *rack) ask(k wire.Kind, t wire.Type, body, out any) error {
	frame, err := r.seal(k, t, body)
	if err != nil {
		return err
	}
	r.client.Publish(r.topic(k).String(), 1, false, frame)
	topic := r.topic(k)
	topic.Direction = wire.Down
	for {
		frame, err := r.next()
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		m, err := wire.Open(topic, func(string) (wire.Keys, bool) { return r.keys, true }, frame)
		switch {
		case errors.Is(err, wire.ErrMAC): // of another topic
		case err != nil:
			return err
		case m.Type == wire.TypeError:
			return fmt.Errorf("%s: %s", t, m.Body)
		default:
			return m.Decode(out)
		}
	}
}

func (r *rack) next() ([]byte, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case frame := <-r.got:
		return frame, nil
	case <-timer.C:
		return nil, errors.New("no answer")
	}
}

// hello opens the session.
func (r *rack) hello() error {
	online, err := r.seal(wire.KindState, wire.TypeState, wire.State{State: wire.Online, Generation: 1, Session: r.session})
	if err != nil {
		return err
	}
	r.client.Publish(r.topic(wire.KindState).String(), 1, true, online)
	nonce := rand.Text()
	var w wire.Welcome
	if err := r.ask(wire.KindSession, wire.TypeHello, wire.Hello{Nonce: nonce, Generation: 1, Boot: "1-abc", Session: r.session}, &w); err != nil {
		return err
	}
	r.nonce = w.Nonce
	return nil
}

// lease gets a task for a slot, under which the next requests run.
func (r *rack) lease(c *cloud, slot int) error {
	err := c.order("tasks", map[string]any{"task": wire.Task{Goal: "buy a kettle", Target: wire.Target{Rack: r.Rack}}}, nil)
	if err != nil {
		return err
	}
	var l wire.Lease
	err = r.ask(wire.KindTask, wire.TypeClaim, wire.Claim{Slot: slot, Phone: fmt.Sprint("p", slot), ClaimID: wire.NewID(time.Now()), SkillsVersion: "1"}, &l)
	if err == nil && l.Task.TaskID == "" {
		err = errors.New("the claim got no task")
	}
	r.task, r.attempt = l.Task.TaskID, l.Attempt
	return err
}

// request is the next plan request.
func (r *rack) request() wire.PlanRequest {
	r.asked++
	return wire.PlanRequest{
		RequestID: fmt.Sprint(r.task, "-", r.asked), HostID: r.Rack, TaskID: r.task, Attempt: r.attempt, SystemPrompt: systemPrompt, UserPrompt: userPrompt, Tools: tools,
	}
}

// plan is the next plan request as a frame. It is made before the clock runs: its hashes are the rack's work.
func (r *rack) plan() ([]byte, error) {
	return r.seal(wire.KindPlan, wire.TypePlanRequest, r.request())
}

// decide sends a plan request and waits for its decision; plan.accepted comes in between and is waited for as well.
func (r *rack) decide(frame []byte) ([]byte, error) {
	r.client.Publish(r.topic(wire.KindPlan).String(), 1, false, frame)
	for accepted := false; ; {
		answer, err := r.next()
		switch {
		case err != nil:
			return nil, err
		case bytes.Contains(answer, []byte(`"type":"plan.decision"`)):
			if !accepted {
				return nil, errors.New("a decision without plan.accepted")
			}
			return answer, nil
		case bytes.Contains(answer, []byte(`"type":"plan.accepted"`)):
			accepted = true
		default:
			return nil, fmt.Errorf("got %s", answer)
		}
	}
}

// bounce sends a frame to an echo and waits for its answer.
func (r *rack) bounce(frame []byte) error {
	r.client.Publish(r.topic(wire.KindPlan).String(), 1, false, frame)
	_, err := r.next()
	return err
}
