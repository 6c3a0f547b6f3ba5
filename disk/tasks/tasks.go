package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"starling/disk"
)

const (
	membersDir = "members" // with a locked file of every process
	planFile   = "plan.json"
	resultFile = "result.json"

	pollEvery  = 20 * time.Millisecond // of tasks that others have
	touchEvery = 2 * time.Second       // of the lock of an own task
	lifeless   = 2 * time.Minute       // Folder.Lifeless: a disk may stall, so it is long
)

// Folder is work in a folder.
type Folder struct {
	Dir string
	// Progress, if set, is called as tasks are done, by whomever.
	Progress func(stage string, done, total int64)
	// Lifeless is how long another process may show no sign of life.
	Lifeless time.Duration
	// Absent are the ranks of this process's launcher that had not joined when the work was finished.
	Absent []int

	role  Role
	now   func() time.Time
	leave func()
}

// Close says that this process reads the folder no more.
func (f *Folder) Close() { f.leave() }

// reader names another process that reads what is in the folder; empty: all have left it, or were killed.
func (f *Folder) reader() string {
	members, _ := filepath.Glob(filepath.Join(f.Dir, membersDir, "*"))
	for _, m := range members {
		release, free, err := disk.Claim(m)
		if err != nil {
			continue // it has just left
		}
		if !free {
			who, _ := os.ReadFile(m)
			return cmp.Or(string(who), "another process")
		}
		release()
	}
	return ""
}

// Other is the error of a folder that has the work of another plan.
type Other struct {
	Dir        string
	Difference string // the first line that is not the same
}

func (e *Other) Error() string {
	return fmt.Sprintf("%s: found unfinished work of other sources or settings (%s); give these again to go on, or "+
		"remove the folder", e.Dir, e.Difference)
}

// difference is the first line that two texts of JSON do not share, brackets aside.
func difference(a, b string) string {
	x, y := said(a), said(b)
	for i := range max(len(x), len(y)) {
		one, other := "nothing", "nothing"
		if i < len(x) {
			one = x[i]
		}
		if i < len(y) {
			other = y[i]
		}
		if one != other {
			return fmt.Sprintf("it has %.120s, this has %.120s", one, other)
		}
	}
	return "the same text"
}

// said are the lines of JSON that say something.
func said(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.Trim(line, " \t\n,"); strings.Trim(line, "{}[]") != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func write(path string, text []byte) error {
	f, err := disk.Create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Abort()
		return err
	}
	return f.Commit()
}

// Done tells whether all tasks of a stage are done.
func (f *Folder) Done(stage string) bool {
	_, err := os.Stat(filepath.Join(f.Dir, stage+".done"))
	return err == nil
}

// Do does the tasks 0 to n-1 of a stage with all other processes, and returns when all of them are done. work fills
// out; what it returns is the result of the task, and is kept as JSON.
func (f *Folder) Do(ctx context.Context, stage string, n int, work func(k int, out *Out) (any, error)) error {
	if f.Done(stage) {
		return nil
	}
	if err := makeFolder(filepath.Join(f.Dir, stage)); err != nil {
		return err
	}
	s := &sweep{f: f, stage: stage, n: n, work: work, done: make([]bool, n), seen: map[int]*life{}}
	for {
		more, err := s.pass(ctx)
		if err != nil {
			return err
		}
		if !more {
			return os.WriteFile(filepath.Join(f.Dir, stage+".done"), nil, 0o666)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

// sweep is one process's way through the tasks of a stage.
type sweep struct {
	f     *Folder
	stage string
	n     int
	work  func(k int, out *Out) (any, error)
	done  []bool
	count int
	seen  map[int]*life
}

// life is when another process touched the lock of a task last, by its own clock, and when that was seen, by ours.
type life struct {
	touched time.Time
	seen    time.Time
}

// pass goes through all tasks once; more tells whether others have some of them.
func (s *sweep) pass(ctx context.Context) (more bool, err error) {
	if s.f.Done(s.stage) { // and its files may be gone
		return false, nil
	}
	for k := range s.n {
		if s.done[k] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		free, err := s.try(k)
		if err != nil {
			return false, err
		}
		if !free {
			more = true
			continue
		}
		s.done[k] = true
		s.count++
		if s.f.Progress != nil {
			s.f.Progress(s.stage, int64(s.count), int64(s.n))
		}
	}
	return more, nil
}

// try does a task, if it is not done; false: another process has it.
func (s *sweep) try(k int) (done bool, err error) {
	dir := s.f.taskDir(s.stage, k)
	if exists(dir) {
		return true, nil
	}
	lock := dir + ".lock"
	l, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return false, err
	}
	l.Close()
	release, free, err := disk.Claim(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !free {
		return false, s.checkLife(k, lock)
	}
	defer release()
	if exists(dir) { // meanwhile
		return true, nil
	}
	if err := os.WriteFile(lock, []byte(self()), 0o666); err != nil {
		return false, err
	}
	stop := keepTouching(lock)
	defer stop()
	if left, _ := filepath.Glob(dir + ".tmp-*"); left != nil { // of processes that were killed
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return false, err
			}
		}
	}
	out := &Out{Dir: fmt.Sprintf("%s.tmp-%d", dir, os.Getpid())}
	if err := os.Mkdir(out.Dir, 0o777); err != nil {
		return false, err
	}
	result, err := s.work(k, out)
	if err == nil {
		err = out.seal(result, dir)
	}
	if err != nil {
		out.abort()
		return false, err
	}
	return true, nil
}

// checkLife is an error if the process that has the task has shown no sign of life for long.
func (s *sweep) checkLife(k int, lock string) error {
	info, err := os.Stat(lock)
	if err != nil {
		return nil
	}
	was := s.seen[k]
	if was == nil || !was.touched.Equal(info.ModTime()) {
		s.seen[k] = &life{info.ModTime(), s.f.now()}
		return nil
	}
	if s.f.now().Sub(was.seen) < s.f.Lifeless {
		return nil
	}
	who, _ := os.ReadFile(lock)
	return fmt.Errorf("task %d of stage %s: %s has it and has shown no sign of life for %s; end that process, and "+
		"start again to go on", k, s.stage, who, s.f.Lifeless)
}

// keepTouching shows that the process is alive.
func keepTouching(path string) (stop func()) {
	end := make(chan struct{})
	go func() {
		tick := time.NewTicker(touchEvery)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case now := <-tick.C:
				os.Chtimes(path, now, now)
			}
		}
	}()
	return func() { close(end) }
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (f *Folder) taskDir(stage string, k int) string {
	return filepath.Join(f.Dir, stage, fmt.Sprintf("%05d", k))
}

// Drop removes the files of tasks from to to-1 of a stage, when no stage that is to be done needs them; their results
// stay.
func (f *Folder) Drop(stage string, from, to int) error {
	for k := from; k < to; k++ {
		dir := f.taskDir(stage, k)
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range files {
			if e.Name() == resultFile {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Finish removes the folder, after put has put what was made in its place. One of the processes does that when all
// have called Finish, and the others wait until the folder is gone.
func (f *Folder) Finish(ctx context.Context, put func() error) error {
	begun := f.now()
	f.leave()
	for {
		reader := ""
		release, free, err := disk.Claim(f.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if free {
			reader = f.reader()
			if reader == "" && f.assembled(begun) || !exists(filepath.Join(f.Dir, planFile)) {
				err := f.finish(put)
				release()
				return err
			}
			release()
		}
		if f.now().Sub(begun) > f.Lifeless {
			return fmt.Errorf("%s: %s has been reading or finishing this work for %s; end it, and start again",
				f.Dir, cmp.Or(reader, "another process"), f.Lifeless)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollEvery):
		}
	}
}

const goneSuffix = ".gone"

// Clean removes what is left of the finished work of a folder, if the process that removed it was killed.
func Clean(dir string) error { return os.RemoveAll(dir + goneSuffix) }

func (f *Folder) finish(put func() error) error {
	if !exists(filepath.Join(f.Dir, planFile)) { // it was finished before this process had its lock
		return nil
	}
	if err := put(); err != nil {
		return err
	}
	gone := f.Dir + goneSuffix // at once: no other process takes half of a folder for unfinished work
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := os.Rename(f.Dir, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}
