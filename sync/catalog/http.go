package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"phonerack/agent/skill/model"
	"phonerack/sync/wire"
)

// Headers of a platform's answer with a manifest.
const (
	HeaderSignature = "Phonerack-Signature" // base64 of the Ed25519 signature over the body
	HeaderKeyID     = "Phonerack-Key-Id"
)

// trustTag is how long an ETag is believed. What it stands for is signed, and the
// answer "not modified" is not: a manifest has to be seen again before it expires.
const trustTag = time.Hour

// maxRetryAfter bounds what a platform may ask for in Retry-After.
const maxRetryAfter = 24 * time.Hour

// HTTPOptions say where another platform is. Base and Bearer are needed.
type HTTPOptions struct {
	Base         string                 // https://host/path; GET Base/manifest and Base/blobs/HASH
	Bearer       func() (string, error) // the credential; asked at each request, so that it can change
	Subscription string                 // query parameter subscription, "" for what the credential says
	// Since lets the platform tell changes only, by the query parameters epoch and since_version. Without it the whole
	// list is fetched each time that it has changed.
	Since  bool
	Client *http.Client     // nil for one of its own
	Now    func() time.Time // nil for time.Now
}

// NewHTTP makes a Platform of an HTTP interface: a manifest is one answer, signed
// by a header, and a body another one. Redirects are not followed: the credential
// is for one host.
func NewHTTP(o HTTPOptions) (Platform, error) {
	base, err := url.Parse(o.Base)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" || o.Bearer == nil {
		return nil, errors.New("a platform of skills needs a credential, and an address such as https://host/path without user and query")
	}
	h := &overHTTP{o: o, base: base}
	if h.o.Now == nil {
		h.o.Now = time.Now
	}
	client := http.Client{}
	if o.Client != nil {
		client = *o.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	h.client = &client
	return h, nil
}

type overHTTP struct {
	o      HTTPOptions
	base   *url.URL
	client *http.Client

	mu  sync.Mutex // guards tag
	tag tag
}

// tag is the validator of the newest manifest that came, and whose it is: what one
// credential got says nothing about what another one has.
type tag struct {
	of   string // hash of credential and subscription
	text string
	mark
	at time.Time
}

func owner(bearer, subscription string) string {
	sum := sha256.Sum256([]byte(bearer + "\x00" + subscription))
	return hex.EncodeToString(sum[:])
}

// Changes implements Platform.
func (h *overHTTP) Changes(ctx context.Context, ask wire.SkillChanges) (page wire.SkillManifest, err error) {
	if ask.Page != "" {
		return page, fmt.Errorf("%w: a manifest over HTTP has no pages", ErrPages)
	}
	query := url.Values{}
	if h.o.Subscription != "" {
		query.Set("subscription", h.o.Subscription)
	}
	if h.o.Since && ask.Since > 0 {
		query.Set("epoch", strconv.FormatInt(ask.Epoch, 10))
		query.Set("since_version", strconv.FormatInt(ask.Since, 10))
	}
	for _, key := range ask.Keys {
		query.Add("key", key)
	}
	bearer, err := h.o.Bearer()
	if err != nil {
		return page, err
	}
	of := owner(bearer, h.o.Subscription)
	r, body, err := h.get(ctx, "manifest", query, bearer, h.validator(of, ask), model.MaxManifestBytes)
	if err != nil {
		return page, err
	}
	if r.StatusCode == http.StatusNotModified {
		return page, ErrUnchanged
	}
	sig, err := base64.StdEncoding.Strict().DecodeString(r.Header.Get(HeaderSignature))
	if err != nil {
		return page, model.ErrBadSignature
	}
	h.keep(tag{of: of, text: r.Header.Get("ETag"), at: h.o.Now()}, body)
	return wire.SkillManifest{Manifest: body, Size: int64(len(body)), Sig: sig, KeyID: r.Header.Get(HeaderKeyID)}, nil
}

// validator is the ETag of what the rack has: none if the manifest that it belongs
// to was not applied, whatever the reason.
func (h *overHTTP) validator(of string, ask wire.SkillChanges) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tag.of != of || ask.Since == 0 || h.tag.mark != (mark{ask.Epoch, ask.Since}) || h.o.Now().Sub(h.tag.at) > trustTag {
		return ""
	}
	return h.tag.text
}

// keep remembers the validator of a manifest. It is not proved here: a wrong
// version makes the validator useless, and nothing else.
func (h *overHTTP) keep(t tag, body []byte) {
	if m, err := model.ParseManifest(body); err == nil && len(t.text) < 256 {
		t.mark = mark{m.Epoch, m.Version}
	} else {
		t = tag{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tag = t
}

// Blob implements Platform: a body comes as a whole.
func (h *overHTTP) Blob(ctx context.Context, ask wire.BlobGet) (d wire.BlobData, part []byte, err error) {
	if !model.ValidSum(ask.SHA256) || ask.Offset != 0 {
		return d, nil, fmt.Errorf("%w: the platform gives whole bodies", ErrBody)
	}
	bearer, err := h.o.Bearer()
	if err != nil {
		return d, nil, err
	}
	r, body, err := h.get(ctx, "blobs/"+ask.SHA256, nil, bearer, "", model.MaxSkillBytes)
	if err != nil {
		return d, nil, err
	}
	if r.StatusCode == http.StatusNotModified {
		return d, nil, ErrBody
	}
	return wire.BlobData{SHA256: ask.SHA256, Size: int64(len(body))}, body, nil
}

// get fetches at most limit bytes. Statuses other than 200 and 304 are errors.
func (h *overHTTP) get(ctx context.Context, path string, query url.Values, bearer, validator string, limit int64) (*http.Response, []byte, error) {
	u := h.base.JoinPath(path)
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	if validator != "" {
		req.Header.Set("If-None-Match", validator)
	}
	r, err := h.client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("ask the platform of skills: %w", err)
	}
	defer r.Body.Close()
	switch {
	case r.StatusCode == http.StatusNotModified && validator != "":
		return r, nil, nil
	case r.StatusCode != http.StatusOK:
		return nil, nil, refused(r)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read the answer of the platform of skills: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, nil, fmt.Errorf("the answer of the platform of skills has more than %d bytes", limit)
	}
	return r, body, nil
}

// refused is what a status means.
func refused(r *http.Response) error {
	status := fmt.Errorf("the platform of skills answers %d", r.StatusCode)
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w, and answers %d: put a valid one into its file", ErrCredential, r.StatusCode)
	case http.StatusNotFound:
		return wire.Refuse(wire.NotFound, map[string]any{"what": "manifest or body", "id": r.Request.URL.Path}).Because(status)
	case http.StatusGone:
		return wire.Refuse(wire.ResyncRequired, map[string]any{"reason": "the platform does not tell changes after that version"}).Because(status)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		refusal := wire.Refuse(wire.LimitExceeded, map[string]any{"what": "questions to the platform of skills", "limit": "what it says"}).Because(status)
		if s, err := strconv.Atoi(strings.TrimSpace(r.Header.Get("Retry-After"))); err == nil && s > 0 {
			return refusal.After(min(time.Duration(min(s, 1<<20))*time.Second, maxRetryAfter))
		}
		return refusal
	}
	return status
}
