// Package providertest is a fake provider of models, for tests of whoever
// calls one. It speaks Anthropic Messages, OpenAI Chat Completions and OpenAI
// Responses, and is as strict with requests as the real ones.
package providertest
