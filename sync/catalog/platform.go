package catalog

import (
	"context"
	"errors"
	"fmt"

	"phonerack/sync/link"
	"phonerack/sync/wire"
)

// Platform is where skills come from. Both methods return when ctx ends, and Blob is
// called by several goroutines. A refusal
// is a *wire.Refusal: resync_required to make the rack ask for the whole list,
// not_found for a body that is not there any more.
type Platform interface {
	// Changes gives a page of a manifest. [ErrUnchanged] says that there is nothing
	// after the version that was asked for.
	Changes(ctx context.Context, ask wire.SkillChanges) (wire.SkillManifest, error)
	// Blob gives a part of a body, from an offset on.
	Blob(ctx context.Context, ask wire.BlobGet) (wire.BlobData, []byte, error)
}

// ErrUnchanged is a Platform's answer if the version that was asked for is the newest.
var ErrUnchanged = errors.New("nothing has changed")

// Reasons for which what a platform sends is not applied; the errors of
// model.OpenManifest are others.
var (
	ErrPages    = errors.New("the pages are not those of one manifest")
	ErrForeign  = errors.New("the manifest is for another rack")
	ErrPartial  = errors.New("the manifest is not what was asked for")
	ErrExpired  = errors.New("the manifest has expired")
	ErrRollback = errors.New("the manifest is older than the one that is applied")
	ErrTooLarge = errors.New("the catalog is too large for this rack")
	ErrBody     = errors.New("the body of a skill is not what the manifest names")
	// ErrCredential is that of a platform over HTTP. No enrolment of the cloud would change it.
	ErrCredential = errors.New("the platform of skills does not accept the credential")
)

// Requester is the link to the cloud; *link.Link is one.
type Requester interface {
	Request(ctx context.Context, c link.Call) (*wire.Message, error)
}

// Over makes a platform of the link to rackcloud.
func Over(r Requester) Platform { return overLink{r} }

type overLink struct{ r Requester }

func (o overLink) Changes(ctx context.Context, ask wire.SkillChanges) (page wire.SkillManifest, err error) {
	_, err = o.ask(ctx, wire.TypeSkillChanges, ask, wire.TypeSkillManifest, &page)
	return page, err
}

func (o overLink) Blob(ctx context.Context, ask wire.BlobGet) (d wire.BlobData, part []byte, err error) {
	m, err := o.ask(ctx, wire.TypeBlobGet, ask, wire.TypeBlobData, &d)
	if err != nil {
		return d, nil, err
	}
	return d, m.Attachment(wire.BlobAttachment), nil
}

func (o overLink) ask(ctx context.Context, t wire.Type, body any, want wire.Type, into any) (*wire.Message, error) {
	m, err := o.r.Request(ctx, link.Call{Kind: wire.KindSkill, Type: t, Body: body})
	if err != nil {
		return nil, err
	}
	if m.Type != want {
		return nil, fmt.Errorf("%s was answered with %s", t, m.Type)
	}
	return m, m.Decode(into)
}
