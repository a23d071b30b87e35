package folder

import (
	"path/filepath"
	"slices"
	"strings"
)

const (
	// DefaultPath is searched where no path is configured.
	DefaultPath = "~/.phonerack/agent_skills"

	// PathsVariable is the environment variable that takes the place of the
	// configured paths. It is read by programs, never here.
	PathsVariable = "PHONERACK_SKILLS_AGENT_SKILLS_PATHS"

	maxPaths = 16
)

// Paths is a list of folders to search, as [ParsePaths] reads it.
type Paths struct {
	Folders []string // absolute, each once, in the order of the search
	Default bool     // none was configured: the folder need not exist
	Skipped []Skip   // parts that are no folder to search
}

// ParsePaths reads a comma-separated list of folders. ~ and what begins with ~/
// lies below home, and a relative path below base. White space around a path and
// empty parts do not count, and a path that is there twice counts once. An empty
// list is [DefaultPath], or nothing where home is empty.
func ParsePaths(list, home, base string) Paths {
	var p Paths
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		path, ok := expand(part, home, base)
		switch {
		case !ok:
			p.Skipped = append(p.Skipped, Skip{part, finding(NoHome, 0, "there is no home folder of that name: write the whole path")})
		case slices.Contains(p.Folders, path):
		case len(p.Folders) == maxPaths:
			p.Skipped = append(p.Skipped, Skip{path, finding(TooMany, 0, "only %d folders are searched", maxPaths)})
		default:
			p.Folders = append(p.Folders, path)
		}
	}
	if len(p.Folders)+len(p.Skipped) > 0 {
		return p
	}
	p.Default = true
	if path, ok := expand(DefaultPath, home, base); ok {
		p.Folders = []string{path}
	}
	return p
}

func expand(path, home, base string) (string, bool) {
	rest, below := strings.CutPrefix(path, "~")
	switch {
	case below && home != "" && (rest == "" || rest[0] == '/' || rest[0] == filepath.Separator):
		path = filepath.Join(home, rest)
	case below:
		return "", false // no home, or somebody else's
	case !filepath.IsAbs(path):
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path), true
}
