package run

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/report/web"
	"starling/spec"
)

// ViewOptions say which runs starling view shows, and where.
type ViewOptions struct {
	Files  []string // that starling train --events wrote, or writes
	Listen string
	HTML   string // write the page there instead
}

// DefaultView listens on loopback.
func DefaultView() ViewOptions { return ViewOptions{Listen: spec.WebAddr} }

// ViewRuns shows runs from their files of events until ctx ends, and follows those that go on. ready is called with the
// link of the page.
func ViewRuns(ctx context.Context, o ViewOptions, ready func(link string)) error {
	if err := spec.CheckFile("--html", o.HTML); err != nil {
		return err
	}
	var runs []*web.Run
	var files []*eventFile
	for _, path := range o.Files {
		f, err := openEventFile(path, nameAmong(path, o.Files))
		if err != nil {
			return err
		}
		defer f.close()
		runs, files = append(runs, f.run), append(files, f)
	}
	if o.HTML != "" {
		return disk.Write(o.HTML, func(w io.Writer) error {
			_, err := w.Write(web.Page(runs...))
			return err
		})
	}
	server, err := servePage("--listen", o.Listen, runs...)
	if err != nil {
		return err
	}
	ready(server.Link)
	return errors.Join(follow(ctx, files), server.Close())
}

// nameAmong tells a file from the others.
func nameAmong(path string, all []string) string {
	if len(all) == 1 {
		return ""
	}
	same := func(o string) bool { return o != path && filepath.Base(o) == filepath.Base(path) }
	if slices.ContainsFunc(all, same) {
		return path
	}
	return filepath.Base(path)
}

// lookAgain is how often files are looked at for new events.
const lookAgain = 300 * time.Millisecond

// follow reads what is added to files until ctx ends.
func follow(ctx context.Context, files []*eventFile) error {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, f := range files {
			if err := f.read(); err != nil {
				return err
			}
		}
	}
}

// eventFile is a file of events that may grow.
type eventFile struct {
	path  string
	f     *os.File
	in    *bufio.Reader
	part  []byte // of a line that is not whole yet
	taken int
	run   *web.Run
}

const (
	// longestEvent bounds a line: the result of a run has the numbers of all epochs.
	longestEvent = 256 << 20
	eventsWanted = "a file that starling train --events wrote"
)

// openEventFile reads the events that are there.
func openEventFile(path, name string) (*eventFile, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, spec.Mistake("RUN", path+", which does not exist", eventsWanted, "")
	case err == nil && !info.Mode().IsRegular():
		return nil, spec.Mistake("RUN", path+", which is no file", eventsWanted, "")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, spec.Mistake("RUN", graph.Sentence(err.Error()), eventsWanted, "")
	}
	e := &eventFile{path: path, f: f, in: bufio.NewReaderSize(f, 1<<16), run: web.NewRun(name)}
	if err := e.read(); err != nil {
		f.Close()
		return nil, err
	}
	if e.taken == 0 {
		f.Close()
		return nil, spec.Mistake("RUN", path+", which holds no events of a run", eventsWanted, "")
	}
	return e, nil
}

func (e *eventFile) close() { e.f.Close() }

// read takes in whole lines up to the end of the file.
func (e *eventFile) read() error {
	for {
		line, err := e.in.ReadSlice('\n')
		e.part = append(e.part, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(e.part) < longestEvent:
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", e.path, err)
		}
		if err := e.take(bytes.TrimSpace(e.part)); err != nil {
			return err
		}
		e.part = e.part[:0]
	}
}

// take takes in a line. Events that this version does not know are left out.
func (e *eventFile) take(line []byte) error {
	x, at, err := event.DecodeAt(line)
	if err != nil {
		return nil
	}
	if o, ok := x.(event.Opened); ok && o.Schema > event.Schema {
		return spec.Mistake("RUN", fmt.Sprintf("%s of schema %d", e.path, o.Schema), fmt.Sprintf("schema %d", event.Schema),
			"use the version that wrote it: "+o.Program)
	}
	e.taken++
	e.run.Take(x, at)
	return nil
}

// Charts are the curves of a run's page, as HTML for other documents, from what starling train --json wrote.
func Charts(result string) ([]byte, error) {
	r, err := report.Read(result)
	if err != nil {
		return nil, err
	}
	return web.Charts(r), nil
}
