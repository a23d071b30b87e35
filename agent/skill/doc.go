// Package skill says who sees which skills of the catalog, and which of them can be
// used with the tools that there are.
//
// A [Catalog] stands on a [Source], the rack's copy. Each question comes from a
// [Caller] and is put to a [View]: list, search, get, resolve, and what includes and
// plans of registry skills ask, all of them by one check, at the moment of the
// question. A skill that the caller may not see is [ErrUnknown], as one that does
// not exist.
//
// Flow templates are held to the registered tools when the copy has changed, when
// [Catalog.ToolsChanged] says that the tools have, and again whenever one is given
// out.
package skill
