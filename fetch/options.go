package fetch

import (
	"os"
	"path/filepath"

	"starling/graph"
	"starling/spec"
)

// Options says where a public dataset comes from and goes to.
type Options struct {
	Out       string // folder to write; "": the dataset's name
	Mirror    string // address that has the files as NAME/FILE, instead of their own places
	Cache     string // folder for downloads; "": starling in the user's cache
	Keep      bool   // leave the downloads there when the import is done
	Overwrite bool
	// Symmetrize adds the reverse of every edge where the files list them one way.
	Symmetrize  bool
	Standardize bool

	download downloadOptions
}

// cacheFolder makes the folder for downloads of a dataset.
func (o *Options) cacheFolder(name string) (string, error) {
	cache := o.Cache
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", spec.Mistake("--cache", "nothing, and no cache folder of this user", "a folder for downloads", "give --cache DIR")
		}
		cache = filepath.Join(base, "starling")
	}
	dir := filepath.Join(cache, name)
	if err := spec.CheckWritable("--cache", dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// checkOut refuses before an hour of downloading, not after.
func (o *Options) checkOut() error {
	if err := spec.CheckNotStdout("--out", o.Out); err != nil {
		return err
	}
	w, err := graph.Create(o.Out, graph.WriterOptions{Overwrite: o.Overwrite})
	if err != nil {
		return err
	}
	w.Abort()
	return nil
}
