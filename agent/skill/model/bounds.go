package model

// Bounds of what is read. A skill that someone wrote honestly stays far below
// them: the largest SKILL.md that was found in public has 294 kB, most have less
// than 20.
const (
	MaxSkillBytes    = 512 << 10 // of a catalog skill's canonical JSON
	MaxContentBytes  = 256 << 10 // of a knowledge skill's text
	MaxYAMLBytes     = 64 << 10  // of one YAML document
	MaxRegistryBytes = 256 << 10 // of a registry skill as JSON
	MaxManifestBytes = 4 << 20   // of a manifest: 5,000 skills have 1.2 MB at most
	MaxDepth         = 64        // of nested lists and objects

	MaxDescription = 1024 // code points
	MaxVersion     = 50   // code points; spec 004 has a column of this width
	MaxTags        = 32
	MaxTag         = 64 // code points of a tag or an alias
	MaxParameters  = 64
	MaxEnum        = 64
	MaxSteps       = 200
	MaxArgsBytes   = 8 << 10 // of one step's arguments, as a template and when resolved

	MaxName       = 255  // bytes of a namespaced name, as spec 004's column
	MaxNamespace  = 100  // bytes, likewise
	MaxShortName  = 150  // bytes, likewise
	MaxItems      = 1000 // of a registry skill
	MaxItemName   = 500  // bytes, as spec 004's column
	MaxItemConfig = 64 << 10

	// MaxCatalog is how many skills a rack may be entitled to.
	MaxCatalog       = 5000
	MaxSubscriptions = 256
	// MaxRemoved bounds what one manifest takes back: a rack may hear of more than it had.
	MaxRemoved = 4 * MaxCatalog
	// MaxPage is the largest page of a list.
	MaxPage = 50
)
