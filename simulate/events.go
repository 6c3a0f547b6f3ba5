package simulate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/internal/version"
	"starling/report"
	"starling/spec"
	"starling/watch"
	"starling/wire"
)

// eventFile is where the events of a case are written.
type eventFile struct {
	path    string
	command string
	given   spec.Spec // as the user gave it: the dataset is cut into a folder that goes away
}

// eventFiles are the files of all cases; of nil ones there is none. The folder is made.
func (o *Options) eventFiles(cases []spec.Case) ([]*eventFile, error) {
	files := make([]*eventFile, len(cases))
	if o.Events == "" {
		return files, nil
	}
	if err := spec.CheckNotStdout("--events", o.Events); err != nil {
		return nil, err
	}
	info, err := os.Stat(o.Events)
	if err == nil && !info.IsDir() {
		return nil, spec.Mistake("--events", o.Events+", which is a file", "a folder, for a file per strategy",
			"choose another name")
	}
	if err = os.MkdirAll(o.Events, 0o755); err != nil {
		return nil, spec.Mistake("--events", graph.Sentence(err.Error()), "a folder to write to", "choose another")
	}
	taken := map[string]bool{}
	for i := range cases {
		name := freeName(fileName(cases[i].Name), taken)
		files[i] = &eventFile{filepath.Join(o.Events, name+".jsonl"), o.Command, cases[i].Spec}
		if err := spec.CheckFile("--events", files[i].path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// fileName is a name with a dash for what is special in the names of files.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._+=-", r):
			return r
		}
		return '-'
	}, name)
	if strings.Trim(safe, ".-") == "" || safe[0] == '.' || safe[0] == '-' { // hidden, or taken for a flag
		return "run" + safe
	}
	return safe
}

// freeName is a name that no other file has, also where names differ by case only.
func freeName(name string, taken map[string]bool) string {
	out := name
	for n := 2; taken[strings.ToLower(out)]; n++ {
		out = fmt.Sprintf("%s-%d", name, n)
	}
	taken[strings.ToLower(out)] = true
	return out
}

// watched has the simulation keep what its workers do.
func (s *simulation) watched() {
	hosts := make([]string, s.scenario.Workers)
	for r := range hosts {
		host := r % s.scenario.Topology.HostCount()
		if s.scenario.Hosts != nil {
			host = s.scenario.Hosts[r]
		}
		hosts[r] = fmt.Sprintf("host %d", host)
	}
	s.watch = watch.NewVirtual(hosts)
	s.scenario.Options.Settled = s.watch.Settled
}

// write writes what a simulation did, whole or not at all; failed is why it ended early.
func (f *eventFile) write(s *simulation, row *Row, failed error) error {
	settings := s.spec
	settings.Dataset, settings.Cluster.Partition = f.given.Dataset, f.given.Cluster.Partition
	settings.Cluster.Partitioner = f.given.Cluster.Partitioner
	events := s.watch.Events()
	err := disk.Write(f.path, func(w io.Writer) error {
		buffered := bufio.NewWriter(w)
		lines := event.NewJSONLines(buffered)
		at := wire.VirtualStart
		lines.Take(event.Opened{Schema: event.Schema, Program: version.Name(), Command: f.command,
			Settings: settings.String(), Virtual: true}, at)
		if bytes, atMost, known := s.watch.Planned(); known {
			lines.Take(event.Planned{EpochSeconds: math.NaN(), EpochBytes: bytes, AtMost: atMost}, at)
		}
		for _, e := range events {
			lines.Take(e.Event, e.At)
			at = e.At
		}
		if failed != nil {
			lines.Take(event.Note{Text: failed.Error()}, at)
		} else if err := end(lines, row, settings, at); err != nil {
			return err
		}
		return errors.Join(lines.Err(), buffered.Flush())
	})
	if err != nil {
		return spec.Mistake("--events", graph.Sentence(err.Error()), "a folder to write to", "choose another")
	}
	return nil
}

// end writes what a simulation ended with.
func end(lines *event.JSONLines, row *Row, settings spec.Spec, at time.Time) error {
	r := result(row, settings)
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	lines.Take(event.Done{Reason: r.Reason, Epochs: r.Epochs, BestEpoch: r.BestEpoch, Val: float64(r.BestValAccuracy),
		Test: float64(r.TestAccuracy), Seconds: r.Seconds}, at)
	lines.Take(event.Result{Report: text}, at)
	return nil
}

// result is the report of a simulated run without what is of this process, or differs from one time to the next, as
// what was sent in the training passes alone: workers that fetch ahead of a pass do so at the moment in which it begins.
func result(row *Row, settings spec.Spec) *report.Run {
	r := *row.Run
	r.Spec, r.Made, r.Seconds = &settings, nil, row.Network.Seconds
	r.PeakRSSBytes, r.WorkerPeakRSSBytes, r.DevicePeakBytes, r.CPUShare, r.Bytes.PerEpoch = 0, nil, 0, 0, nil
	return &r
}
