package wire

// Skills are described by package agent/skill/model; here they are bytes.

// MaxPage bounds the part of a manifest in one [SkillManifest], in bytes. It is
// written as base64, and a frame has 256 KiB of JSON at most.
const MaxPage = 96 << 10

// MaxBlobPart bounds the attachment of one [BlobData], in bytes.
const MaxBlobPart = 256 << 10

// SkillChanges asks for the rack's manifest: what changed after version Since of
// Epoch, or the whole list if Since is 0. Page is the NextPage of the answer before,
// "" for the first. Keys are the ids of the platform's keys that the rack trusts:
// the manifest is signed with one of them. Which subscriptions the rack has is the
// cloud's to know.
type SkillChanges struct {
	Epoch int64    `json:"epoch,omitempty"`
	Since int64    `json:"since,omitempty"`
	Page  string   `json:"page,omitempty"`
	Keys  []string `json:"keys,omitempty"`
}

// SkillManifest is a part of a manifest's bytes. Sig is over all of them, so that
// parts which are missing, repeated, in another order or of another manifest are
// found out: the parts of one manifest have the same Size, Sig and KeyID.
type SkillManifest struct {
	Manifest []byte `json:"manifest"` // bytes from Offset on, at most MaxPage
	Offset   int64  `json:"offset,omitempty"`
	Size     int64  `json:"size"`   // of the whole
	Sig      []byte `json:"sig"`    // Ed25519, 64 bytes
	KeyID    string `json:"key_id"` // of the platform's key
	NextPage string `json:"next_page,omitempty"`
}

// BlobGet asks for bytes by their hash, from Offset on.
type BlobGet struct {
	SHA256 string `json:"sha256"`
	Offset int64  `json:"offset,omitempty"`
}

// BlobData answers with a part of them, the attachment [BlobAttachment].
type BlobData struct {
	SHA256 string `json:"sha256"`
	Offset int64  `json:"offset,omitempty"`
	Size   int64  `json:"size"` // of the whole
}

// BlobAttachment names the bytes of a [BlobData].
const BlobAttachment = "data"

// SkillChanged is a hint that there is a newer manifest: nothing depends on its
// arrival. What it says is gone is hidden at once, until a complete manifest of
// that version of that epoch, or a later one, brings it back.
type SkillChanged struct {
	Epoch        int64    `json:"epoch"`
	Version      int64    `json:"version"`
	Removed      []string `json:"removed,omitempty"`      // ids of skills
	Subscription string   `json:"subscription,omitempty"` // that is in State now
	State        string   `json:"state,omitempty"`        // active or revoked
}
