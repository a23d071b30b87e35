package fleet

import (
	"context"
	"errors"
	"regexp"

	"phonerack/cloud/enroll"
	"phonerack/cloud/store"
	"phonerack/sync/wire"
)

// File is one that was uploaded for tasks. A task names it in its inputs.
type File struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

// Names and hashes of inputs, as racks take them.
var (
	inputName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	inputSum  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func checkInputs(all []wire.Input) error {
	if len(all) > wire.MaxInputs {
		return bad("a task has at most %d files", wire.MaxInputs)
	}
	names := map[string]bool{}
	for _, in := range all {
		switch {
		case !inputName.MatchString(in.Name):
			return bad("%.80q is no name for a file: it has 1 to 64 letters, digits, dots, underscores and dashes", in.Name)
		case names[in.Name]:
			return bad("two files have the name %s", in.Name)
		case !inputSum.MatchString(in.SHA256):
			return bad("the file %s is not named by its sha256 of 64 lower-case hexadecimal digits", in.Name)
		}
		names[in.Name] = true
	}
	return nil
}

// known fills in the sizes of a task's files, and gives their hashes.
func (f *Fleet) known(ctx context.Context, op Operator, inputs []wire.Input) (hashes []string, err error) {
	for i := range inputs {
		in := &inputs[i]
		file, err := f.store.File(ctx, op.Scope(), in.SHA256)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, bad("the file %s (%s) is not here: upload it first", in.Name, in.SHA256)
		case err != nil:
			return nil, Refusal(err)
		case in.Size != 0 && in.Size != file.Size:
			return nil, bad("the file %s has %d bytes and not %d", in.Name, file.Size, in.Size)
		}
		in.Size = file.Size
		hashes = append(hashes, in.SHA256)
	}
	return hashes, nil
}

// PutFile keeps a file for tasks. The same bytes again are the same file.
func (f *Fleet) PutFile(ctx context.Context, op Operator, body []byte) (File, error) {
	switch {
	case len(body) == 0:
		return File{}, bad("the file is empty")
	case len(body) > wire.MaxInput:
		return File{}, wire.Refuse(wire.PayloadTooLarge, map[string]any{"what": "file", "size": len(body), "limit": wire.MaxInput})
	}
	file, err := f.store.PutFile(ctx, op.Scope(), body)
	return File(file), Refusal(err)
}

// FilePart gives a rack a part of a file of a task whose live lease it has. Any other file is one that does not exist.
func (f *Fleet) FilePart(ctx context.Context, c enroll.Caller, b wire.BlobGet) (wire.BlobData, []byte, error) {
	part, size, err := f.store.RackFile(ctx, c.Scope(), c.Rack, b.SHA256, min(b.Offset, wire.MaxInput), wire.MaxBlobPart)
	if err != nil {
		return wire.BlobData{}, nil, Named(err, "blob", b.SHA256)
	}
	if b.Offset > size {
		return wire.BlobData{}, nil, bad("the bytes end before offset %d", b.Offset)
	}
	return wire.BlobData{SHA256: b.SHA256, Offset: b.Offset, Size: size}, part, nil
}
