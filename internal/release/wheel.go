package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// wheel is the Python package with the program inside, for one platform.
type wheel struct{ source, binary, tag, version string }

// entry is a file of an archive.
type entry struct {
	name string
	mode fs.FileMode
	data []byte
}

// wheelForm is the file WHEEL: the program lies in the folder for this platform.
const wheelForm = "Wheel-Version: 1.0\nGenerator: starling\nRoot-Is-Purelib: false\nTag: py3-none-%s\n"

var (
	released = regexp.MustCompile(`^v?(\d+(\.\d+)*((a|b|rc)\d+)?)$`)
	foreign  = regexp.MustCompile(`[^0-9a-zA-Z]+`)
)

// pythonVersion is a version as Python's rules have it: a commit is a development version with a local name.
func pythonVersion(version string) string {
	if m := released.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	if version == "" {
		return "0.dev0"
	}
	return "0.dev0+g" + strings.Trim(foreign.ReplaceAllString(version, "."), ".")
}

// wheelTag is the platform of a program's wheel: that which the program was built for, as its linker noted it.
func wheelTag(binary string) (string, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return "", err
	}
	var of target
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			of.system = s.Value
		case "GOARCH":
			of.arch = s.Value
		case "-tags":
			of.static = slices.Contains(strings.Split(s.Value, ","), "static")
		}
	}
	for _, t := range targets {
		if t.tag != "" && t.name() == of.name() {
			return t.tag, nil
		}
	}
	return "", fmt.Errorf("%s: found a program for %s, want one that wheels are made of, for Linux on amd64 or arm64",
		binary, of.name())
}

// write writes the wheel into a folder, and returns its path.
func (w wheel) write(dir string) (string, error) {
	files, err := w.files()
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := writeZip(&b, files); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("starling-%s-py3-none-%s.whl", w.version, w.tag))
	return path, os.WriteFile(path, b.Bytes(), 0o666)
}

// files lists what is in the wheel, with the list of hashes at the end, as pip wants it.
func (w wheel) files() ([]entry, error) {
	var files []entry
	add := func(path, name string, mode fs.FileMode) error {
		b, err := os.ReadFile(path)
		files = append(files, entry{name, mode, b})
		return err
	}
	sources, err := filepath.Glob(filepath.Join(w.source, "python", "starling", "*.py"))
	if err != nil {
		return nil, err
	}
	for _, path := range append(sources, filepath.Join(w.source, "python", "starling", "py.typed")) {
		if err := add(path, "starling/"+filepath.Base(path), 0o644); err != nil {
			return nil, err
		}
	}
	info := "starling-" + w.version + ".dist-info/"
	if err := add(w.binary, "starling/bin/starling", 0o755); err != nil {
		return nil, err
	}
	if err := add(filepath.Join(w.source, "LICENSE"), info+"licenses/LICENSE", 0o644); err != nil {
		return nil, err
	}
	files = append(files,
		entry{info + "WHEEL", 0o644, fmt.Appendf(nil, wheelForm, w.tag)},
		entry{info + "entry_points.txt", 0o644, []byte("[console_scripts]\nstarling = starling._process:main\n")},
		entry{info + "METADATA", 0o644, w.metadata()})
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	return append(files, entry{info + "RECORD", 0o644, []byte(record.String())}), nil
}

func (w wheel) metadata() []byte {
	note := ""
	if strings.HasPrefix(w.tag, "musllinux") {
		note = "\nThis wheel is for CPUs: the program in it opens no libraries of the system (CUDA, MPI, METIS).\n"
	}
	return fmt.Appendf(nil, `Metadata-Version: 2.4
Name: starling
Version: %s
Summary: Trains graph neural networks on one machine or many
License-File: LICENSE
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

Trains graph neural networks on one machine or many. The package carries the starling program, and starts it.

    import starling
    run = starling.train(data, model="sage", workers=4, epochs=100)
    run.metrics, run.history, run.predict(data)
%s`, w.version, note)
}

// writeZip writes an archive whose bytes depend on the files only.
func writeZip(to io.Writer, files []entry) error {
	z := zip.NewWriter(to)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(f.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
