package leo

import (
	"context"
	"embed"
	"fmt"
	"slices"
	"strings"

	"starling/rng"
	"starling/wire/paths"
)

// Options say what is simulated.
type Options struct {
	Cases    []string // names, of Names
	Requests int      // per simulation
	Seed     uint64
}

// DefaultOptions are all cases.
func DefaultOptions() Options { return Options{Cases: Names(), Requests: 20000} }

// Row is one point of a figure.
type Row struct {
	Case    string  `json:"case"`
	Figure  string  `json:"figure"`
	Setting string  `json:"setting"`
	Policy  string  `json:"policy"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
	// LEOOver is the paper's heuristic over the value in the same setting, QueueOver leo-queue, which is ours.
	LEOOver   float64 `json:"leo_over,omitempty"`
	QueueOver float64 `json:"leo_queue_over,omitempty"`
	Median    float64 `json:"median_us,omitempty"`
	P99       float64 `json:"p99_us,omitempty"`
}

// study is a case.
type study struct {
	name  string
	paper string // what the paper reads there
	run   func(r *runner) error
}

var studies = []study{
	{"hybrid", "random over both is above 71.8 Mops of the smartNIC and 23.0 of the CPU", (*runner).hybrid},
	{"kvs", "LEO sustains 1.2-2x (YCSB-C) and up to 3x (YCSB-B) the load of its baselines; one path 1.5x DrTM-KV",
		(*runner).keyValue},
	{"dfs", "LEO 1.19-4.69x CPU and DOCA, by cores", (*runner).replication},
	{"ebs", "LEO 1.14-1.75x in throughput, 1.1-1.91x in IOPS; iPipe 1.04-1.71x CPU and Solar", (*runner).blocks},
	{"dml", "LEO on average 4.08x NCCL from 4 KB to 1 GB, comparable at both ends; Open MPI last", (*runner).allReduce},
	{"policy", "LEO 1.18-2.17x the greedy policies, close to the optimum", (*runner).policies},
}

// Names are the cases.
func Names() (names []string) {
	for _, s := range studies {
		names = append(names, s.name)
	}
	return names
}

// Paper is what the paper reads in a case.
func Paper(name string) string {
	for _, s := range studies {
		if s.name == name {
			return s.paper
		}
	}
	return ""
}

// Simulate runs the cases; done receives every row.
func Simulate(ctx context.Context, o Options, done func(Row)) ([]Row, error) {
	r := &runner{ctx: ctx, opt: o, key: rng.New(o.Seed).Fold(0x1e0), done: done}
	for _, name := range o.Cases {
		found := false
		for _, s := range studies {
			if s.name == name {
				found = true
				if err := s.run(r); err != nil {
					return nil, err
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("found case %q, want one of %s", name, strings.Join(Names(), ", "))
		}
	}
	return r.rows, nil
}

// runner is the studies under way.
type runner struct {
	ctx  context.Context
	opt  Options
	key  rng.Key
	rows []Row
	done func(Row)
}

// setting adds the rows of one setting: what the heuristics gain over each is known when all are there.
func (r *runner) setting(rows []Row) error {
	over := func(name string, x *Row) float64 {
		i := slices.IndexFunc(rows, func(y Row) bool { return y.Policy == name })
		if i < 0 || x.Value == 0 || x.Policy == name {
			return 0
		}
		return rows[i].Value / x.Value
	}
	for _, x := range rows {
		x.LEOOver, x.QueueOver = over(leo.name, &x), over(leoQueue.name, &x)
		r.rows = append(r.rows, x)
		r.done(x)
	}
	return r.ctx.Err()
}

//go:embed cases
var files embed.FS

// plan returns the plan of a case, with some words replaced.
func plan(name string, replace ...string) *paths.Plan {
	text, err := files.ReadFile("cases/" + name + ".yaml")
	if err != nil {
		panic(err)
	}
	f, err := paths.Parse([]byte(strings.NewReplacer(replace...).Replace(string(text))))
	if err != nil {
		panic(fmt.Sprintf("cases/%s.yaml: %v", name, err)) // the file is our own
	}
	return paths.NewPlan(f)
}

// closed returns the requests per second that are done with this number outstanding.
func (r *runner) closed(p *paths.Plan, m maker, kind, n, outstanding int) float64 {
	t := make(paths.Trace, n)
	for i := range t {
		t[i] = paths.Arrival{Kind: kind, Address: uint64(i), Message: uint64(i)}
	}
	o := paths.Replay(p, m.make(p, t, r.key.Fold(3)), paths.Load{Trace: t, Outstanding: outstanding,
		Delay: jitter(r.key.Fold(4))})
	return float64(n) / last(o.End)
}

func last(all []float64) (latest float64) {
	for _, x := range all {
		latest = max(latest, x)
	}
	return latest
}
