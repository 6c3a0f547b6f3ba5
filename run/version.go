package run

import "runtime/debug"

// release is the name of a release, set by the linker: -X starling/run.release=v1.2.3.
var release string

// Version is that of a release, else the module's, or the commit a working copy was
// built from. All workers of a run must have the same.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v, changed := info.Main.Version, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && v == "(devel)":
			v = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true" && info.Main.Version == "(devel)":
			changed = "+changes"
		}
	}
	return v + changed
}
