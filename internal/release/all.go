package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// target is one binary of a release, and what it is packed into.
type target struct {
	system, arch string
	static       bool
	tag          string // of the wheel; "": none
}

var targets = []target{
	{"linux", "amd64", false, "manylinux_2_17_x86_64"},
	{"linux", "amd64", true, "musllinux_1_1_x86_64"},
	{"linux", "arm64", false, "manylinux_2_17_aarch64"},
	{"linux", "arm64", true, "musllinux_1_1_aarch64"},
	{"darwin", "amd64", false, ""},
	{"darwin", "arm64", false, ""},
	{"windows", "amd64", false, ""},
}

func (t target) name() string {
	name := t.system + "-" + t.arch
	if t.static {
		name += "-static"
	}
	return name
}

func (t target) program() string {
	if t.system == "windows" {
		return "starling.exe"
	}
	return "starling"
}

// release is all that is packed from one source.
type release struct{ source, version, commit, out string }

// build builds the program of a target into a folder, and returns its path.
func (r release) build(t target, dir string) (string, error) {
	path := filepath.Join(dir, t.name(), t.program())
	flags := "-s -w -X starling/internal/version.release=" + r.version +
		" -X starling/internal/version.commit=" + r.commit
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path}
	if t.static {
		args = append(args, "-tags", "static")
	}
	c := exec.Command("go", append(args, "./cmd/starling")...)
	c.Dir = r.source
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.system, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", t.name(), err, out)
	}
	return path, nil
}

// all builds every target whose name has only in it, and packs them; the sums come last.
func (r release) all(only string) error {
	dir, err := os.MkdirTemp("", "starling-release-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	host, err := r.build(target{system: runtime.GOOS, arch: runtime.GOARCH}, dir)
	if err != nil {
		return err
	}
	extra, err := r.beside(host)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if !strings.Contains(t.name(), only) {
			continue
		}
		binary, err := r.build(t, dir)
		if err != nil {
			return err
		}
		if err := r.pack(t, binary, extra); err != nil {
			return err
		}
	}
	return writeSums(r.out)
}

// pack writes what a target is installed from, and the list of modules in it.
func (r release) pack(t target, binary string, extra []entry) error {
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	base := fmt.Sprintf("starling-%s-%s", number, t.name())
	files := []entry{{base + "/" + t.program(), 0o755, program}}
	for _, e := range extra {
		files = append(files, entry{base + "/" + e.name, e.mode, e.data})
	}
	var b bytes.Buffer
	ending := ".tar.gz"
	if t.system == "windows" {
		ending, err = ".zip", writeZip(&b, files)
	} else {
		err = writeTar(&b, files)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, base+ending), b.Bytes(), 0o666); err != nil {
		return err
	}
	bill, err := modules(binary, r.version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, base+".cdx.json"), bill, 0o666); err != nil {
		return err
	}
	if t.tag != "" {
		if _, err := (wheel{r.source, binary, t.tag, pythonVersion(r.version)}).write(r.out); err != nil {
			return err
		}
	}
	if t.system == "linux" && !t.static {
		return r.debian(t.arch, program, extra)
	}
	return nil
}

// beside is what goes with a program: license, README, the page of the manual, and completions of shells.
func (r release) beside(binary string) ([]entry, error) {
	var files []entry
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return nil, err
		}
		files = append(files, entry{name, 0o644, b})
	}
	page, err := manual(binary, r.version)
	if err != nil {
		return nil, err
	}
	files = append(files, entry{"starling.1", 0o644, page})
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		b, err := exec.Command(binary, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell, err)
		}
		files = append(files, entry{"completion/starling." + shell, 0o644, b})
	}
	return files, nil
}

// writeSums writes SHA256SUMS of all other files of a folder.
func writeSums(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, f := range list { // in the order of names
		if f.Name() == "SHA256SUMS" || !f.Type().IsRegular() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o666)
}

// named is the entry of that name.
func named(files []entry, name string) []byte {
	return files[slices.IndexFunc(files, func(e entry) bool { return e.name == name })].data
}
