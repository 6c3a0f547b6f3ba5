package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"starling/disk"
)

// Role is what a process does for work that several share. The zero value begins the work if there is none, and
// finishes it with all others that are there.
type Role struct {
	// Helper joins work that another process begins, and finishes: it never begins any.
	Helper bool
	// Rank, Size and Job are of the tasks that a launcher has started (Size 0: none has). Those but rank 0 are helpers;
	// rank 0 finishes when all have joined.
	Rank, Size int
	Job        string
}

// startWithin is how much later than others a task of a launcher may start.
const startWithin = time.Minute

// Target is where the result of the work goes.
type Target struct {
	Made      func() bool  // it has the result already
	Free      func() error // why it cannot be written
	Overwrite bool         // what is there is made again
}

// Begin opens the work of a plan in dir as the role says; nil: nothing is left to do.
func Begin(ctx context.Context, dir string, plan any, role Role, t Target) (*Folder, error) {
	for begun := time.Now(); ; {
		f, err := Join(dir, plan)
		if err == nil {
			return f, f.arrive(role, t)
		}
		switch {
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		case !t.Overwrite && t.Made():
			if role.Helper {
				return nil, nil
			}
			return nil, Clean(dir)
		case !role.Helper:
			return begin(dir, plan, role, t)
		case role.Size == 0: // it was there when this helper was started
			return nil, nil
		case !t.Made() && t.Free() != nil && !t.Made(): // rank 0 finds the same, unless it has just finished
			return nil, t.Free()
		case time.Since(begun) > startWithin && t.Made():
			return nil, nil
		case time.Since(begun) > startWithin:
			return nil, fmt.Errorf("%s: rank 0 has not begun this work within %s; start the job again, with a folder "+
				"that all its hosts share", dir, startWithin)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

func begin(dir string, plan any, role Role, t Target) (*Folder, error) {
	if err := t.Free(); err != nil {
		return nil, err
	}
	f, err := Open(dir, plan)
	if err != nil {
		return nil, err
	}
	return f, f.arrive(role, t)
}

const (
	arrivedDir    = "arrived"   // with a file of every task of a launcher that has joined
	overwriteFile = "overwrite" // what is at the target may be replaced
)

// arrive says that this process is there, and what it may do.
func (f *Folder) arrive(role Role, t Target) (err error) {
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	f.role = role
	if t.Overwrite {
		if err := os.WriteFile(filepath.Join(f.Dir, overwriteFile), nil, 0o666); err != nil {
			return err
		}
	}
	if role.Size == 0 {
		return nil
	}
	if err := makeFolder(filepath.Join(f.Dir, arrivedDir)); err != nil {
		return err
	}
	return os.WriteFile(f.arrival(role.Rank), nil, 0o666)
}

func (f *Folder) arrival(rank int) string {
	return filepath.Join(f.Dir, arrivedDir, fmt.Sprintf("%s-%d", f.role.Job, rank))
}

// assembled tells whether no other task of the launcher will join any more, as far as is known.
func (f *Folder) assembled(begun time.Time) bool {
	f.Absent = nil
	for rank := range f.role.Size {
		if !exists(f.arrival(rank)) {
			f.Absent = append(f.Absent, rank)
		}
	}
	return f.Absent == nil || f.now().Sub(begun) > min(startWithin, f.Lifeless/2)
}

// Overwrites tells whether one of the processes may replace what is at the target.
func (f *Folder) Overwrites() bool { return exists(filepath.Join(f.Dir, overwriteFile)) }

// Open opens the work of a plan in dir, and starts it if there is none. A folder of another plan is refused
// with an Other error.
func Open(dir string, plan any) (*Folder, error) {
	f, err := Join(dir, plan)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	text, err := planText(plan)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	if err := write(filepath.Join(dir, planFile), text); err != nil { // which another process may do at the same time
		return nil, err
	}
	return Join(dir, plan)
}

// Join opens the work of a plan in dir; an error that is fs.ErrNotExist: there is none, or no longer.
func Join(dir string, plan any) (*Folder, error) {
	text, err := planText(plan)
	if err != nil {
		return nil, err
	}
	there, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(there, text) {
		return nil, &Other{Dir: dir, Difference: difference(string(there), string(text))}
	}
	f := &Folder{Dir: dir, Lifeless: lifeless, now: time.Now, leave: func() {}}
	if err := f.join(); err != nil {
		return nil, err
	}
	return f, nil
}

func planText(plan any) ([]byte, error) { return json.MarshalIndent(plan, "", " ") }

// join says that this process reads what is in the folder, until it leaves.
func (f *Folder) join() error {
	dir := filepath.Join(f.Dir, membersDir)
	if err := makeFolder(dir); err != nil {
		return err
	}
	m, err := os.CreateTemp(dir, "*")
	if err != nil {
		return err
	}
	_, err = m.WriteString(self())
	if err := errors.Join(err, m.Close()); err != nil {
		return err
	}
	release, _, err := disk.Claim(m.Name())
	if err != nil {
		return err
	}
	f.leave = func() {
		release()
		os.Remove(m.Name())
		f.leave = func() {}
	}
	return nil
}

// self names this process to a user.
func self() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// makeFolder makes a folder of the work. It never makes the work's own folder anew, which another process may just have
// removed.
func makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// WithoutRanks tells a user of tasks that did not join.
func (f *Folder) WithoutRanks() string {
	return fmt.Sprintf("ranks %s of %d did not join this work within %s: all hosts must share the folder of %s",
		strings.Trim(fmt.Sprint(f.Absent), "[]"), f.role.Size, startWithin, f.Dir)
}
