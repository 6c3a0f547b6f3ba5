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
	"sync"
	"time"

	"starling/disk"
	"starling/wire"
)

// sharedFile is a rendezvous in a folder that all hosts see. The file appears whole
// or not at all, and only its owner can read it, so it may hold the token. Its name
// has the launcher's job: one of an older job is never looked at.
//
// While a coordinator lives it touches its file. One that is killed cannot remove it:
// the next of the same job replaces it, and the next of any job removes what has not
// been touched for long. Ages are taken from the file system's own clock, which is one
// for all hosts; if that is set ahead, a living file is gone until it is touched again.
type sharedFile struct{ path string }

func (f sharedFile) Secret() bool   { return true }
func (f sharedFile) String() string { return "file:" + filepath.Dir(f.path) }

const (
	maxEntry = 64 << 10
	touched  = 20 * time.Second // how often a file is
	dead     = 5 * time.Minute  // a file that was not touched for so long
)

// Publish writes the file; withdraw removes it, if it is still ours.
func (f sharedFile) Publish(_ context.Context, e Entry, warn func(error)) (func(), error) {
	if err := f.write(e); err != nil {
		return nil, err
	}
	f.sweep()
	alive, stop := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.live(alive, e)
	}()
	return sync.OnceFunc(func() {
		stop()
		<-stopped
		if now, err := f.read(); err != nil || now != e {
			return
		}
		if err := os.Remove(f.path); err != nil {
			warn(err)
		}
	}), nil
}

func (f sharedFile) write(e Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".starling-new-*.json") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}

// live touches the file by writing it anew, so that it has the file system's time,
// and is there again where another process took us for dead. What another coordinator has
// put in its place stays.
func (f sharedFile) live(ctx context.Context, e Entry) {
	for wire.Sleep(ctx, wire.Real, touched) == nil {
		if now, err := f.read(); err == nil && (now == e || now == Entry{}) {
			_ = f.write(e) // the next time, unless it is no longer needed
		}
	}
}

// sweep removes what coordinators that were killed have left in the folder.
func (f sharedFile) sweep() {
	mine, err := os.Stat(f.path)
	if err != nil {
		return
	}
	list, _ := filepath.Glob(filepath.Join(filepath.Dir(f.path), ".starling-*.json"))
	for _, path := range list {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !disk.Ours(info) {
			continue
		}
		if age := mine.ModTime().Sub(info.ModTime()); age > dead { // the file system's clock
			os.Remove(path)
		}
	}
}

// Find waits for the file.
func (f sharedFile) Find(ctx context.Context, old Entry) (Entry, error) {
	return look(ctx, old, f.path, f.read)
}

// read is the entry; the zero one where there is none yet. A file that another user
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
	if !disk.Ours(info) {
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
