package predict

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"starling/graph"
	"starling/serve"
	"starling/setup"
	"starling/spec"
)

// Formats are the libraries that Export writes for.
var Formats = serve.Formats

// Export writes a run's model into a folder, as a Python library loads it.
func Export(dir, format, out string, overwrite bool) (*serve.Exported, error) {
	if err := checkExportFolder(out, overwrite); err != nil {
		return nil, err
	}
	t, err := serve.Open(dir)
	if err != nil {
		return nil, err
	}
	return t.Export(format, out)
}

// checkExportFolder refuses to replace anything but an earlier export, and that without overwrite.
func checkExportFolder(dir string, overwrite bool) error {
	if dir == "" {
		return spec.Mistake("--out", "nothing", "a folder to write", "")
	}
	if err := spec.CheckNotStdout("--out", dir); err != nil {
		return err
	}
	if serve.IsExport(dir) {
		if err := graph.CheckReplaced(dir, "export", spec.WeightsFile, spec.ConfigFile, "model.py", "__pycache__"); err != nil {
			return err
		}
		return setup.Overwriteable(dir, "this export", overwrite)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return spec.CheckFile("--out", filepath.Clean(dir))
	case err != nil:
		return spec.Mistake("--out", graph.Sentence(err.Error()), "a folder", "choose another name")
	case len(entries) > 0:
		return spec.Mistake("--out", dir+", which holds "+entries[0].Name(), "a new folder, or an earlier export",
			"choose another name")
	}
	return nil
}
