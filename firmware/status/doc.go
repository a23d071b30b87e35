// Package status is the technician's page: the rack as it stands, why a slot is not well and what to do, and the acts
// that help, for somebody with a phone on the rack's network and no internet.
//
// The life of a Page: New takes a Source, which tells how the rack is, and an Actor, which runs actions of package
// action; Serve answers on a listener until its context ends, streams included. Each address gives HTML or JSON, as the
// request prefers. The HTML is complete without JavaScript; with it one stream of events freshens what changed, and a
// page that nobody looks at asks for nothing.
//
// What holds always:
//
//   - A GET changes nothing. Each act is a POST from this page itself (http.CrossOriginProtection, a SameSite cookie).
//   - The Host of a request is one that the rack has, else the answer is 421: a foreign name that was made to point at
//     the rack (DNS rebinding) sees nothing.
//   - How the slots are and the map are open on the network. Pictures, trajectories, logs, bundles and acts need the PIN;
//     a rack without a PIN lets nobody in.
//   - No script or style stands in a page, and nothing is fetched from elsewhere.
//   - Sessions, failures, streams, bodies, lists and texts are bounded.
//
// The package acts on nothing itself and keeps nothing on disk. docs/page.md has the pages, the rules and the figures.
package status
