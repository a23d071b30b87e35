// Package supervise watches over the parts of rackd, which github.com/thejerf/suture starts again when they end.
//
//	watch := supervise.New(supervise.Options{Logger: log, Clock: lease.BootTime})
//	tree := watch.Tree("rack", stopPart)
//	watch.Add(tree, part)                  // each part in a tree of its own
//
// A part that panics is contained: its goroutine ends, the log has the stack once, and it is started again. A part that
// fails again and again waits, and waits alone: suture counts failures for each tree, and a tree with many parts would keep
// all of them waiting. So each part, and each slot, has its own.
//
// What ended is counted, for metrics, and handed to whoever asks with Take: package health calls many ends in a short time a
// crash loop.
package supervise
