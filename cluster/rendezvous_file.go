package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sharedFile is a rendezvous in a folder that all hosts see. The file appears whole
// or not at all, and only its owner can read it, so it may hold the token. Its name
// has the launcher's job: one of an older job is never looked at; and what a
// coordinator that was killed has left behind is replaced by the next.
type sharedFile struct{ path string }

func (f sharedFile) Secret() bool   { return true }
func (f sharedFile) String() string { return "file:" + filepath.Dir(f.path) }

const maxEntry = 64 << 10

// Publish writes the file; withdraw removes it, if it is still ours.
func (f sharedFile) Publish(_ context.Context, e Entry, warn func(error)) (func(), error) {
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".starling-*") // mode 0600
	if err != nil {
		return nil, err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return nil, err
	}
	return func() {
		if now, err := f.read(); err != nil || now != e {
			return
		}
		if err := os.Remove(f.path); err != nil {
			warn(err)
		}
	}, nil
}

// Find waits for the file.
func (f sharedFile) Find(ctx context.Context, old Entry) (Entry, error) {
	return look(ctx, old, f.path, f.read)
}

// read is the entry; the zero one where there is none yet. A file that somebody else
// wrote could lead a worker anywhere.
func (f sharedFile) read() (e Entry, err error) {
	r, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return e, err
	}
	if !ours(info) {
		return e, fmt.Errorf("%s belongs to another user", f.path)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxEntry))
	if err != nil {
		return e, err
	}
	if json.Unmarshal(text, &e) != nil || e.Addr == "" {
		return Entry{}, fmt.Errorf("%s names no run", f.path)
	}
	return e, nil
}
