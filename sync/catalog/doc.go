// Package catalog keeps a rack's copy of the skills that it is entitled to.
//
// [Open] reads the copy that is in the database, which serves at once and without
// a network. [Catalog.Run] asks the [Platform] for changes, at an interval and
// whenever [Catalog.Hint] says that there are some; nothing depends on hints.
// [Over] makes a Platform of the link to rackcloud, [NewHTTP] one of another
// platform's HTTP interface.
//
// A manifest comes in pages. It counts only as a whole: proved with a key that the
// rack trusts, for this rack, not expired, and not older than the one before. Then
// the bodies that it names are fetched by their hashes into the database, where
// nothing refers to them yet, so that what was fetched before a cut is not fetched
// again. One transaction then puts the list, the cursor and the keys in the place
// of the former ones. Whatever goes wrong before it leaves the copy as it was, and
// [Catalog.Status] tells what it was.
//
// The rack may know that a skill is gone before the list says so: [Catalog.Hint]
// hides it at once, for good until a complete list of that version or a later one.
//
// No transaction is held over an exchange with the platform. Who may see which
// skill is asked at each query, see [model.Copy.Entitled].
package catalog
