// Package archtest holds who may import whom. It has tests only: they read the imports of every
// package of the repository, tests apart, and compare them with the rules of docs/architecture.md.
package archtest
