package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSameBytes packs one program twice, at another time and into another folder: every file is the same, and nothing
// that it should have is missing. scripts/test-release builds everything twice.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	var all []map[string][]byte
	for range 2 {
		dir := t.TempDir()
		binary, extra := filepath.Join(dir, "starling"), []entry{{"LICENSE", 0o644, []byte("free")}}
		for _, name := range []string{"starling.1", "completion/starling.bash", "completion/starling.zsh",
			"completion/starling.fish", "completion/starling.powershell", "README.md", "CHANGELOG.md"} {
			extra = append(extra, entry{name, 0o644, []byte(name)})
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(self, binary); err != nil {
			t.Fatal(err)
		}
		r := release{"../..", "v1.2.3", "0123456789ab", filepath.Join(dir, "out")}
		if err := os.Mkdir(r.out, 0o777); err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			if target.arch == "amd64" {
				if err := r.pack(target, binary, extra); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := writeSums(r.out); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		list, err := os.ReadDir(r.out)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if files[f.Name()], err = os.ReadFile(filepath.Join(r.out, f.Name())); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, files)
	}
	for _, name := range []string{"SHA256SUMS", "starling-1.2.3-linux-amd64.tar.gz",
		"starling-1.2.3-linux-amd64.cdx.json", "starling-1.2.3-linux-amd64-static.tar.gz",
		"starling-1.2.3-windows-amd64.zip", "starling_1.2.3_amd64.deb",
		"starling-1.2.3-py3-none-manylinux_2_17_x86_64.whl", "starling-1.2.3-py3-none-musllinux_1_1_x86_64.whl"} {
		if len(all[0][name]) == 0 {
			t.Errorf("there is no %s", name)
		}
	}
	for name, data := range all[0] {
		if !bytes.Equal(data, all[1][name]) {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
	looks(t, all[0])
}

// TestSameProgramFromTwoFolders builds the program here and from a copy elsewhere: the same bytes, so that neither the
// folder nor git is in them. Packages that a cache has are not compiled again; scripts/test-release uses none.
func TestSameProgramFromTwoFolders(t *testing.T) {
	t.Parallel()
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-coz", "--exclude-standard").Output()
	if err != nil {
		t.Skip("no git here: ", err)
	}
	copied := filepath.Join(t.TempDir(), "a longer name")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		to := filepath.Join(copied, name)
		b, err := os.ReadFile(filepath.Join("../..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o777)
		}
		if err == nil {
			err = os.WriteFile(to, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var programs [][]byte
	for _, source := range []string{"../..", copied} {
		path, err := release{source, "v1.2.3", "0123456789ab", ""}.build(targets[0], t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, b)
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("the program differs from one folder to the other")
	}
	for _, b := range programs {
		if bytes.Contains(b, []byte(copied)) {
			t.Error("the program has the folder in it")
		}
	}
}

// looks reads the packages with other programs.
func looks(t *testing.T, files map[string][]byte) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	shows := func(want string, args ...string) {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Log("not looked at: ", err)
			return
		}
		c := exec.Command(args[0], args[1:]...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, no %q in\n%s", args, err, want, out)
		}
	}
	shows("starling_1.2.3_amd64.deb: OK", "sha256sum", "-c", "SHA256SUMS")
	shows(" Architecture: amd64", "dpkg-deb", "--info", "starling_1.2.3_amd64.deb")
	shows("-rwxr-xr-x root/root", "dpkg-deb", "--contents", "starling_1.2.3_amd64.deb")
	shows("starling-1.2.3-linux-amd64/starling", "tar", "tzf", "starling-1.2.3-linux-amd64.tar.gz")
	z, err := zip.OpenReader(filepath.Join(dir, "starling-1.2.3-py3-none-musllinux_1_1_x86_64.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.Name == "starling/bin/starling" && f.Mode().Perm() != 0o755 {
			t.Errorf("the program in the wheel has mode %v", f.Mode())
		}
	}
	var bill struct{ Components []struct{ PURL string } }
	err = json.Unmarshal(files["starling-1.2.3-linux-amd64.cdx.json"], &bill)
	if err != nil || len(bill.Components) == 0 || !strings.HasPrefix(bill.Components[0].PURL, "pkg:golang/std@1.") {
		t.Errorf("bill of materials: %v, %+v", err, bill)
	}
}

func TestPythonVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3rc1": "1.2.3rc1", "": "0.dev0",
		"0123456789ab": "0.dev0+g0123456789ab", "0123456789ab+changes": "0.dev0+g0123456789ab.changes"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%q is %s, want %s", version, got, want)
		}
	}
}

// TestWheelTag: a wheel is for what its program was built for, whatever machine it is packed on.
func TestWheelTag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ arch, tags, want string }{
		{"amd64", "", "manylinux_2_17_x86_64"},
		{"arm64", "", "manylinux_2_17_aarch64"},
		{"arm64", "static", "musllinux_1_1_aarch64"},
	} {
		binary := filepath.Join(dir, x.arch+x.tags)
		c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", x.tags, "-o", binary, source)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+x.arch)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got, err := wheelTag(binary); got != x.want || err != nil {
			t.Errorf("%+v: %s, %v", x, got, err)
		}
	}
	if got, err := wheelTag(source); err == nil {
		t.Errorf("the tag of a text is %s", got)
	}
}

func TestRoff(t *testing.T) {
	t.Parallel()
	if got := paragraphs(".a -b\n\n  c\\n\n'd"); got != "\\&.a \\-b\n.PP\n.br\n  c\\en\n\\&'d\n" {
		t.Errorf("%q", got)
	}
}
