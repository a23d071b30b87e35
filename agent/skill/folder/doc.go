// Package folder finds Agent Skills: folders with a file SKILL.md that holds a
// YAML front matter between two fences and Markdown below.
//
// [ParsePaths] reads the list of folders to search, [Scan] looks at the folders
// directly below each, and [Parse] reads one file. Files follow the public
// standard (agentskills.io, as of agentskills/agentskills@69ef37e) and may have
// two more keys, input_schema and output_schema. A strict scan leaves out every
// file that departs from that; a lenient one takes what is still clear and
// attaches a [Finding] for each departure. Whatever is left out is in
// [Result.Skipped] with its reason: no skill disappears without a word.
//
// What lies in such a folder comes from strangers. Files are opened below the
// searched folder and cannot lead out of their own skill's folder, neither by a
// name nor by a link; sizes, depth and numbers are bounded; characters that
// nobody sees are taken out and counted. Nothing in a folder is ever run, and
// allowed-tools grants nothing.
package folder
