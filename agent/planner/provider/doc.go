// Package provider asks a model for decisions: it speaks Anthropic Messages,
// OpenAI-compatible Chat Completions and OpenAI Responses.
//
// A [Client] is made from a [Config], which is one provider profile: which
// protocol, model, address, key, timeout and [Options]. It holds no state but
// that, so a caller that resolves its profile for every request makes a new one
// each time; connections live in a [Pool], which clients share.
//
// [Client.Call] makes one decision or fails with a *wire.Refusal:
//
//   - The request is made by the provider's own SDK, without anything from the
//     environment, and forces a tool call. Names of tools that providers do not
//     allow are escaped, see the file names.go. The user prompt, which holds what a
//     phone shows, goes into the user's message as it is, the screen as a picture.
//   - It is sent again only when no byte of an answer has come, or when the
//     provider says so by its status; never after a timeout. One deadline covers all
//     attempts. A wait that the provider asks for is kept if it fits, else the
//     failure says when to come back.
//   - The answer is read here, as bytes, and not by the SDKs, whose decoders
//     take what does not fit for something that does. It has to be a success that is
//     no error in disguise, that ended by itself, with exactly one call, of a tool
//     that was offered, whose arguments are one JSON object that fits the schema.
//
// Nothing is ever mended: there is no default decision, no first of several, no
// arguments completed. (OpenAI-compatible servers write the arguments of a tool
// without parameters as an empty string; that counts as {} and has to fit.)
//
// The key appears in no error, log or dump. What a provider says is quoted
// bounded, without the key and without what it repeats of the request.
package provider
