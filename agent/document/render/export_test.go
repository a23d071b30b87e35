package render

// For tests from outside of the package.
var (
	Confine    = confine
	KindOf     = kindOf
	Undrawable = undrawable
)
