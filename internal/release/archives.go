package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeTar writes a tar.gz whose bytes depend on the files only.
func writeTar(to io.Writer, files []entry) error {
	z, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)), ModTime: time.Unix(0, 0),
			Typeflag: tar.TypeReg, Uname: "root", Gname: "root", Format: tar.FormatGNU}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// debian writes a Debian package: an ar archive of a version, a control file and the files.
func (r release) debian(arch string, program []byte, extra []entry) error {
	version := "0~" + foreign.ReplaceAllString(r.version, "+")
	if m := released.FindStringSubmatch(r.version); m != nil {
		version = m[1]
	}
	page, err := zipped(named(extra, "starling.1"))
	if err != nil {
		return err
	}
	files := []entry{
		{"./usr/bin/starling", 0o755, program},
		{"./usr/share/bash-completion/completions/starling", 0o644, named(extra, "completion/starling.bash")},
		{"./usr/share/doc/starling/copyright", 0o644, named(extra, "LICENSE")},
		{"./usr/share/fish/vendor_completions.d/starling.fish", 0o644, named(extra, "completion/starling.fish")},
		{"./usr/share/man/man1/starling.1.gz", 0o644, page},
		{"./usr/share/zsh/vendor-completions/_starling", 0o644, named(extra, "completion/starling.zsh")},
	}
	control := fmt.Appendf(nil, `Package: starling
Version: %s
Architecture: %s
Maintainer: The Starling authors <starling@localhost>
Installed-Size: %d
Depends: libc6 (>= 2.17)
Section: science
Priority: optional
Description: trains graph neural networks on one machine or many
 One program, on CPUs and NVIDIA GPUs, on whole graphs or on mini-batches.
`, version, arch, (len(program)+1023)/1024+64)
	var b, c, d bytes.Buffer
	if err := writeTar(&c, []entry{{"./control", 0o644, control}}); err != nil {
		return err
	}
	if err := writeTar(&d, withFolders(files)); err != nil {
		return err
	}
	b.WriteString("!<arch>\n")
	for _, m := range []entry{{"debian-binary", 0, []byte("2.0\n")}, {"control.tar.gz", 0, c.Bytes()},
		{"data.tar.gz", 0, d.Bytes()}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", m.name, 0, 0, 0, 0o100644, len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return os.WriteFile(filepath.Join(r.out, fmt.Sprintf("starling_%s_%s.deb", version, arch)), b.Bytes(), 0o666)
}

// withFolders puts the folders of files before them.
func withFolders(files []entry) (all []entry) {
	var made []string
	for _, f := range files {
		for i, c := range f.name {
			if dir := f.name[:i+1]; c == '/' && !slices.Contains(made, dir) {
				made = append(made, dir)
				all = append(all, entry{dir, 0o755, nil})
			}
		}
		all = append(all, f)
	}
	return all
}

func zipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

// modules is a bill of materials in CycloneDX's form: the modules that the linker put into a program.
func modules(binary, version string) ([]byte, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	type component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl,omitempty"`
	}
	list := []component{{Type: "library", Name: "std", Version: strings.TrimPrefix(info.GoVersion, "go"),
		PURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, component{Type: "library", Name: m.Path, Version: m.Version,
			PURL: "pkg:golang/" + m.Path + "@" + m.Version})
	}
	return json.MarshalIndent(map[string]any{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata":   map[string]any{"component": component{Type: "application", Name: "starling", Version: version}},
		"components": list}, "", " ")
}
