package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

func identityOf(t *testing.T, dir string) *Identity {
	t.Helper()
	id, err := LoadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestMutualTLS: workers of one authority join; all others are refused and named, and
// the job does not notice.
func TestMutualTLS(t *testing.T) {
	dir, other := filepath.Join(t.TempDir(), "certs"), filepath.Join(t.TempDir(), "certs")
	if _, err := MakeCerts(dir, []string{"a", "b"}, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeCerts(dir, []string{"old"}, -time.Minute, false); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeCerts(other, []string{"x"}, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	g := gather(t, context.Background(), Config{Workers: 2, Identity: identityOf(t, filepath.Join(dir, "a"))})
	old := &Identity{&tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "old", certificateFile), filepath.Join(dir, "old", keyFile))
	if err != nil {
		t.Fatal(err)
	}
	old.config.Certificates = []tls.Certificate{pair}
	outsiders := map[string]*Identity{
		"no TLS":         nil,
		"no certificate": {&tls.Config{InsecureSkipVerify: true}},
		"expired":        old,
		"another authority": {&tls.Config{InsecureSkipVerify: true,
			Certificates: identityOf(t, filepath.Join(other, "x")).config.Certificates}},
	}
	for name, id := range outsiders {
		if m, err := Join(context.Background(), JoinRequest{Coordinator: g.Addr(), Rank: 0, Version: "v1",
			Identity: id}); err == nil {
			m.Listener.Close()
			t.Errorf("%s was admitted", name)
		}
	}
	for g.refusals() < len(outsiders) { // they hear of it before the coordinator is told
		time.Sleep(time.Millisecond)
	}
	var wg sync.WaitGroup
	for r, host := range []string{"a", "b"} {
		wg.Go(func() {
			m, err := Join(context.Background(), JoinRequest{Coordinator: g.Addr(), Rank: r, Version: "v1",
				Identity: identityOf(t, filepath.Join(dir, host))})
			if err != nil {
				t.Error(err)
				return
			}
			m.Listener.Close()
			if err := m.Done(json.RawMessage("1"), nil); err != nil {
				t.Error(err)
			}
		})
	}
	testdeadline.Wait(t, &wg, "workers")
	if testdeadline.Receive(t, g.over, "the end of the run"); g.err != nil {
		t.Error(g.err)
	}
	told := strings.Join(g.refused, "\n")
	for _, want := range []string{"expired", "authority", "certificate", "--tls"} {
		if !strings.Contains(told, want) {
			t.Errorf("no refusal says %q: %s", want, told)
		}
	}
}

// TestIdentityFiles: what is wrong with a folder is said.
func TestIdentityFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	made, err := MakeCerts(dir, []string{"a"}, time.Hour, false)
	if err != nil || len(made) != 1 {
		t.Fatal(made, err)
	}
	if again, err := MakeCerts(dir, []string{"a"}, time.Hour, false); err != nil || len(again) != 0 {
		t.Error(again, err)
	}
	for _, f := range []string{"ca-key.pem", "a/key.pem", "a/cert.pem"} {
		if info, err := os.Stat(filepath.Join(dir, f)); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(f, err)
		}
	}
	MakeCerts(dir, []string{"old"}, -time.Minute, false)
	for _, c := range []struct{ dir, want string }{{t.TempDir(), "starling certs"},
		{filepath.Join(dir, "old"), "expired on"}} {
		if _, err := LoadIdentity(c.dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Error(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "a", "ca.pem"), []byte("hello"), 0o600)
	if _, err := LoadIdentity(filepath.Join(dir, "a")); err == nil || !strings.Contains(err.Error(), "no certificate") {
		t.Error(err)
	}
}

// TestAuthorityFiles: half an authority signs nothing, is named, and is left as it is,
// since hosts may have certificates of it.
func TestAuthorityFiles(t *testing.T) {
	whole, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{whole, other} {
		if _, err := MakeCerts(dir, []string{"a"}, time.Hour, false); err != nil {
			t.Fatal(err)
		}
	}
	foreign, err := os.ReadFile(filepath.Join(other, authorityKey))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, want string
		text       []byte // nil: it is gone
	}{
		{authorityFile, "no such file", nil},
		{authorityFile, "no certificate", []byte{}},
		{authorityKey, "no such file", nil},
		{authorityKey, "no key", []byte("hello")},
		{authorityKey, "another authority", foreign},
	} {
		dir := filepath.Join(t.TempDir(), "certs")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		os.Remove(filepath.Join(dir, c.file))
		if c.text != nil {
			os.WriteFile(filepath.Join(dir, c.file), c.text, 0o600)
		}
		before := contents(t, dir)
		_, err := MakeCerts(dir, []string{"b"}, time.Hour, false)
		if a := (*AuthorityError)(nil); !errors.As(err, &a) || filepath.Base(a.File) != c.file ||
			!strings.Contains(a.Found, c.want) {
			t.Errorf("%s, %s: %v", c.file, c.want, err)
		}
		if after := contents(t, dir); !maps.Equal(before, after) {
			t.Errorf("%s, %s: the folder was changed", c.file, c.want)
		}
	}
}

// contents are the files of a folder, by their names.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		m[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A key that others can read is refused: who has it is a worker.
func TestKeyThatOthersCanRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	if _, err := MakeCerts(dir, []string{"a"}, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "a", keyFile)
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(filepath.Join(dir, "a")); err == nil || !strings.Contains(err.Error(), "chmod 600 "+key) {
		t.Error(err)
	}
}
