// Package durable makes files that are whole after a power cut: their content is on disk before their name is, and their
// name before anybody is told. It is for the few small files beside the database, which has means of its own.
package durable
