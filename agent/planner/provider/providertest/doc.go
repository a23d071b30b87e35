// Package providertest is a fake provider of models, for tests and benchmarks
// of whoever calls one. One [Server] speaks Anthropic Messages, OpenAI Chat
// Completions and OpenAI Responses, by the path that is asked for, and shares no
// code with the adapters that it judges.
//
// It is as strict with requests as the real ones, or more: the path, the
// headers, the key, every field of the body, the picture (base64 of a JPEG), the
// names of tools, a call that is forced. What it does not like it refuses as the
// protocol does, and [Seen.Problem] says why.
//
// Requests that it likes are answered by the script, one [Reply] each, and by
// [Config.Default] when that is used up. Without latency of its own, it may
// measure what a caller adds.
package providertest
