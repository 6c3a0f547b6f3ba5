package fetch

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"starling/dataset"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/train"
)

// Get downloads a public dataset, or goes on with a download that was cut off, checks
// it and imports it.
func Get(ctx context.Context, name string, opt Options, events event.Listener) (dataset.Summary, error) {
	set, ok := publicSets[name]
	if !ok {
		return dataset.Summary{}, spec.Mistake("NAME", fmt.Sprintf("%q", name), "one of "+strings.Join(Names(), ", "), train.Suggest(name, Names()))
	}
	if opt.Out == "" {
		opt.Out = name
	}
	if set.make != nil {
		return set.makeHere(ctx, opt)
	}
	in := set.options
	in.Symmetrize, in.Overwrite = in.Symmetrize || opt.Symmetrize, opt.Overwrite
	in.Standardize = opt.Standardize
	if err := in.Check(set.format); err != nil {
		return dataset.Summary{}, err
	}
	if err := opt.checkOut(); err != nil {
		return dataset.Summary{}, err
	}
	dir, err := opt.cacheFolder(name)
	if err != nil {
		return dataset.Summary{}, err
	}
	unpacked := filepath.Join(dir, "unpacked")
	defer os.RemoveAll(unpacked)
	locked := event.Locked(event.All(events))
	src, sums, err := set.fetchAll(ctx, name, dir, unpacked, opt, locked)
	if err != nil {
		return dataset.Summary{}, set.byHand(name, dir, opt.Mirror, err, locked)
	}
	sum, err := setup.InStages(ctx, opt.Out, events, func(report dataset.Progress) (dataset.Summary, error) {
		in.Progress = report
		return dataset.Import(set.format, src, in, opt.Out)
	})
	switch {
	case errors.Is(err, graph.ErrInput):
		return sum, fmt.Errorf("%w (what was downloaded is in %s; remove that to download it again)", err, dir)
	case err != nil:
		return sum, err
	case !opt.Keep:
		return sum, os.RemoveAll(dir)
	}
	return sum, keepSums(sums)
}

// keepSums notes the sums of files that turned out to be good, for later downloads.
func keepSums(sums map[string]string) error {
	for path, sum := range sums {
		if err := os.WriteFile(path+".sha256", []byte(sum+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// fetchAll downloads the files and returns what is to be imported, and the sums of files of which none was known.
func (s *publicSet) fetchAll(ctx context.Context, name, dir, unpacked string, opt Options, l event.Listener) (src string, sums map[string]string, err error) {
	src, sums = dir, map[string]string{}
	for _, f := range s.files {
		path, recorded, err := s.fetch(ctx, name, f, dir, opt, l)
		if err != nil {
			return "", nil, err
		}
		if recorded != "" {
			sums[path] = recorded
		}
		if strings.HasSuffix(f.name, ".zip") {
			if src, err = unzip(ctx, path, unpacked, l); err != nil {
				return "", nil, err
			}
		} else if s.single {
			src = path
		}
	}
	return src, sums, nil
}

// fetch downloads one file unless it is there already, and checks it.
func (s *publicSet) fetch(ctx context.Context, name string, f publicFile, dir string, opt Options, l event.Listener) (path, recorded string, err error) {
	address := f.address(name, opt.Mirror)
	d := download{url: address, path: filepath.Join(dir, f.name), size: f.size, most: f.most, sha256: f.sha256, opt: opt.download, events: l}
	recorded, err = d.run(ctx)
	if errors.Is(err, context.Canceled) {
		l.On(event.Note{Text: "the download stopped; run the same command again to go on from there"})
		return "", "", report.ErrInterrupted
	}
	if err == nil && recorded != "" {
		l.On(event.Note{Text: fmt.Sprintf("%s: no checksum is known for it; its SHA-256 is %s", f.name, recorded)})
	}
	return d.path, recorded, err
}

// maxUnpacked bounds what a zip may unpack to, as a multiple of its own size: text
// packs ten times, features of zeros more.
const maxUnpacked = 200

// unzip unpacks into a folder and returns the one inside it, if there is but one.
func unzip(ctx context.Context, path, to string, l event.Listener) (string, error) {
	bad := func(found, want string) error {
		return &graph.InputError{File: path, Found: found, Want: want, Fix: "remove the file to download it again, or use another --mirror"}
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return "", bad(graph.Sentence(err.Error()), "a zip")
	}
	defer z.Close()
	if err := os.RemoveAll(to); err != nil {
		return "", err
	}
	var total, packed, done int64
	if info, err := os.Stat(path); err == nil {
		packed = info.Size()
	}
	for _, f := range z.File {
		if total += int64(min(f.UncompressedSize64, 1<<50)); total > maxUnpacked*packed+1<<20 {
			return "", bad(fmt.Sprintf("%s that unpack to %s or more", event.Bytes(packed), event.Bytes(total)), "a dataset")
		}
	}
	for _, f := range z.File {
		name := filepath.FromSlash(f.Name)
		if !filepath.IsLocal(strings.TrimRight(name, "/\\")) || !f.FileInfo().IsDir() && !f.Mode().IsRegular() {
			return "", bad(fmt.Sprintf("%.60q", f.Name), "files inside one folder")
		}
		target := filepath.Join(to, name)
		if f.FileInfo().IsDir() {
			if err := os.MkdirAll(target, 0o755); err != nil {
				return "", badName(f.Name, err, bad)
			}
			continue
		}
		l.On(event.Progress{Task: "unpack", Done: done, Total: total})
		if err := unzipFile(ctx, f, target, bad); err != nil {
			return "", err
		}
		done += int64(f.UncompressedSize64)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return "", bad("nothing inside", "the files of a dataset")
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "__MACOSX") })
	if len(entries) == 1 && entries[0].IsDir() {
		return filepath.Join(to, entries[0].Name()), nil
	}
	return to, nil
}

func unzipFile(ctx context.Context, f *zip.File, target string, bad func(found, want string) error) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return badName(f.Name, err, bad)
	}
	in, err := f.Open()
	if err != nil {
		return bad(graph.Sentence(f.Name+": "+err.Error()), "a whole zip")
	}
	defer in.Close()
	out, err := os.Create(target)
	if err != nil {
		return badName(f.Name, err, bad)
	}
	_, err = io.CopyN(out, untilDone{ctx, in}, int64(f.UncompressedSize64))
	if err == nil {
		_, err = io.ReadFull(in, make([]byte, 1)) // the checksum is compared at the end
		if err == nil {
			err = errors.New("more than it says")
		} else if err == io.EOF {
			err = nil
		}
	}
	if closed := out.Close(); closed != nil {
		return closed
	}
	if ctx.Err() != nil {
		return report.ErrInterrupted
	}
	var disk *os.PathError
	if errors.As(err, &disk) {
		return err
	}
	if err != nil {
		return bad(graph.Sentence(f.Name+": "+err.Error()), "a whole zip")
	}
	return nil
}

// badName tells of a name that cannot be, or not beside others, such as a file that is a
// folder too; a disk's failure stays what it is.
func badName(name string, err error, bad func(found, want string) error) error {
	for _, of := range []error{syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.EINVAL, syscall.ENAMETOOLONG} {
		if errors.Is(err, of) {
			return bad(fmt.Sprintf("%.60q: %v", name, of), "names that files can have")
		}
	}
	return err
}

// untilDone is a reader that ends with a context.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// makeHere writes a dataset that is not downloaded.
func (s *publicSet) makeHere(ctx context.Context, opt Options) (dataset.Summary, error) {
	for flag, given := range map[string]bool{"--mirror": opt.Mirror != "", "--cache": opt.Cache != "", "--keep": opt.Keep,
		"--symmetrize": opt.Symmetrize, "--standardize": opt.Standardize} {
		if given {
			return dataset.Summary{}, spec.Mistake(flag, "a setting without effect on a dataset that is not downloaded", "it only for others", "leave it out")
		}
	}
	if err := opt.checkOut(); err != nil {
		return dataset.Summary{}, err
	}
	return setup.UntilInterrupted(ctx, opt.Out, func() (dataset.Summary, error) { return s.make(opt.Out, opt.Overwrite) })
}
