// Package registry keeps named collections of tools, so-called registry skills,
// and says which tools a skill comes down to.
//
// [Registry] stores skills in a bucket of the rack's database, as the rows of two
// tables: skills, and skill_items with a stable order. What it returns after a
// restart is equal, in every field, to what it was given. [Registry.Tools] and
// [Registry.ValidatePlan] resolve skills against what is registered at that
// moment. A [Resolver] does the same over any source of skills; its comment has
// the rules. [Tools] is the table of the tools that exist, with their sources;
// [Registry.Discover] and [Registry.RefreshAgentSkills] fill it from Agent Skills
// folders.
//
// Skills may include skills of the catalog, as catalog/<id>. What a caller may
// see of the catalog is passed in with each question as a [Catalog]: a skill that
// it does not show is the same as one that does not exist.
//
// Nothing here executes a tool.
package registry
