// Package catalog is the platform that racks get their skills from: what is published, who is subscribed, and the signed
// manifests that say so.
//
// A skill belongs to one subscription of a tenant, for good. A subscription is granted to all racks of the tenant or to one,
// for all agents on it or for one; what a rack is entitled to is derived from its proved identity and never from what it
// asks for. A body is given out by its hash, and only to racks that are entitled to the skill.
//
// [Catalog.Changes] answers a rack with a manifest, whole or as the changes after a version, cut into pages by bytes and
// signed as a whole with Ed25519. The pages of one manifest are kept in memory for a while; another replica makes them anew
// if nothing has changed, else the rack begins again. After each change the racks that are there get a hint
// (skill.changed); nothing depends on its arrival.
//
// A signing key is replaced in two steps: the next key is told in the manifests and signs nothing, then it is made the
// active one. A rack says which keys it knows and gets a signature by one of them, so that one that was away for long goes
// on with an old key until that is dropped.
package catalog
