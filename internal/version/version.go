// Package version says what the program was built from.
package version

import "runtime/debug"

// release is the name of a release and commit what it was built from, set by the linker:
// -X starling/internal/version.release=v1.2.3 -X starling/internal/version.commit=0123456789ab.
var release, commit string

// Name is the release, else the module's version, or the commit a working copy was built from. All
// workers of a run must have the same.
func Name() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "(devel)" || Commit() == "" {
		return v
	}
	return Commit()
}

// shortCommit is how much of a commit's name is shown.
const shortCommit = 12

// Commit is what the program was built from, with "+changes" where files differed from it; "": not known.
func Commit() string {
	if commit != "" {
		return commit
	}
	name, changed := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				name = s.Value[:min(shortCommit, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = "+changes"
			}
		}
	}
	if name == "" {
		return ""
	}
	return name + changed
}
