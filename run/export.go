package run

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"starling/graph"
	"starling/serve"
)

// ExportFormats are the libraries that Export writes for.
var ExportFormats = serve.Formats

// Export writes a run's model into a folder, as a Python library loads it.
func Export(dir, format, out string) (*serve.Exported, error) {
	if err := checkExportFolder(out); err != nil {
		return nil, err
	}
	t, err := serve.Open(dir)
	if err != nil {
		return nil, err
	}
	return t.Export(format, out)
}

// checkExportFolder refuses to replace anything but an earlier export.
func checkExportFolder(dir string) error {
	if dir == "" {
		return mistake("--out", "nothing", "a folder to write", "")
	}
	if err := checkNotDash("--out", dir); err != nil {
		return err
	}
	if serve.IsExport(dir) {
		return graph.CheckReplaced(dir, "export", weightsFile, configFile)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return CheckFile("--out", filepath.Clean(dir))
	case err != nil:
		return mistake("--out", err.Error(), "a folder", "choose another name")
	case len(entries) > 0:
		return mistake("--out", dir+", which holds "+entries[0].Name(), "a new folder, or an earlier export", "choose another name")
	}
	return nil
}
