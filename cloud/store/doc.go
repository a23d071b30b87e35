// Package store keeps the records of the cloud side: racks and their identities, provider profiles and limits, tasks
// with their attempts, the planner's log, commands, and who did what. It runs on SQLite for one machine and on
// PostgreSQL for many; both hold the same tables and pass the same tests (storetest).
//
// A [Store] is opened once per process by [Open], which brings the tables up to date, and is closed at the end. Its
// methods may be called from any goroutine and by any number of replicas at once: whatever must have one winner is a
// conditional update or a row lock, never a look followed by a write. Each method is one transaction, and none is held
// while anything but the database is waited for.
//
// Every method takes the [Scope] of its caller. A record of another tenant is answered like one that does not exist,
// with [ErrNotFound]. What has no tenant yet, or none at all, is apart in [System]: finding out whose a bearer is, and
// the keeping of the database (expiry, pruning, backup, sealing anew).
//
// Every method that changes something writes down who did it in the same transaction, except those that happen all the
// time and are records themselves: Renew, Reserve, Settle, Begin, SetSession and AddEvent always, Heartbeat and
// SetPresence if no state changed by them.
//
// Time comes from the clock given to Open, never from SQL; it is stored in milliseconds. Secrets arrive here sealed
// (package cloud/vault) or hashed, and no screenshot ever arrives.
package store
