// Package logbook keeps what rackd logs where people can read it without a journal: the newest records in memory, and of
// those that matter a little on disk.
//
//	book := logbook.New(logbook.Bounds{})
//	kept, err := logbook.OpenFolder(dir, logbook.Budget{})
//	log := slog.New(logbook.Once(slog.NewMultiHandler(stderr, book.Handler(options), kept.Handler(options)), time.Hour))
//	go kept.Run(ctx)
//
// A Book is a ring with bounds on records and bytes. Readers ask for what came after a number, and get a channel that is
// closed when there is more: a reader that is slow, or never comes back, costs nothing and delays nobody.
//
// A Folder keeps warnings, errors and changes of state (records with the attribute "state") over restarts, and spares the
// card: it writes what has gathered every ten minutes and at the end, each time one small file that is there whole or not
// at all, and at most so many bytes in 24 hours, counted over restarts. What does not fit is counted and left out.
//
// Once leaves out a line that says what was said last: whoever polls logs a change, and then nothing until the next one.
//
// Secrets are taken out by the ReplaceAttr of the options that the handlers are given.
package logbook
