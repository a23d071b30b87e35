package speed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"phonerack/sync/wire"
)

// host speaks HTTP with a rack's bearer, over one connection that stays.
type host struct {
	*rack
	url    string
	client *http.Client
}

func (c *cloud) host(r *rack) (*host, error) {
	conf, err := security(r.Bundle)
	return &host{r, "https://" + c.API() + "/v1/hosts/" + r.Rack + "/planner-decisions", &http.Client{
		Timeout: patience, Transport: &http.Transport{TLSClientConfig: conf, MaxIdleConnsPerHost: 1},
	}}, err
}

// plan is the next plan request as a body.
func (h *host) plan() ([]byte, error) {
	return json.Marshal(struct {
		wire.PlanRequest
		Screen []byte `json:"screen"`
	}{h.request(), screen})
}

// decide posts a plan request and reads the decision.
func (h *host) decide(body []byte) ([]byte, error) {
	req, err := http.NewRequest(http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+h.Bearer)
	resp, err := h.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, raw)
	}
	return raw, err
}
