package leo

import (
	"fmt"
	"strconv"

	"starling/wire/paths"
)

// hybrid is figure 6.3: operations per second with 2,000 outstanding.
func (r *runner) hybrid() error {
	p := plan("hybrid")
	var rows []Row
	for _, m := range beside(onePath("cpu", "cpu"), onePath("smartnic", "acc"), even, weighted) {
		rows = append(rows, Row{Case: "hybrid", Figure: "6.3", Policy: m.name, Unit: "Mops",
			Value: r.closed(p, m, 0, 5*r.opt.Requests, 2000) / 1e6})
	}
	return r.setting(rows)
}

// replication is figure 6.11: bytes of files per second by cores on both sides.
func (r *runner) replication() error {
	for _, cores := range []int{1, 2, 4, 8} {
		p := plan("dfs", "CORES", strconv.Itoa(cores))
		var rows []Row
		for _, m := range beside(onePath("doca", "acc-cpu"), onePath("cpu", "cpu-cpu")) {
			rate := r.closed(p, m, 0, r.opt.Requests/4, 4*(cores+1))
			rows = append(rows, Row{Case: "dfs", Figure: "6.11", Setting: fmt.Sprintf("%d cores", cores),
				Policy: m.name, Unit: "GB/s", Value: rate * 256e3 / 1e9})
		}
		if err := r.setting(rows); err != nil {
			return err
		}
	}
	return nil
}

// blocks is figure 6.12: throughput of 64 KB reads and IOPS of 4 KB reads by cores.
func (r *runner) blocks() error {
	for _, read := range []struct {
		name, unit string
		factor     float64
	}{{"read-64KB", "GB/s", 64e3 / 1e9}, {"read-4KB", "MIOPS", 1e-6}} {
		for _, cores := range []int{1, 2, 3, 4} {
			p := plan("ebs", "CORES", strconv.Itoa(cores))
			var rows []Row
			for _, m := range beside(onePath("cpu", "cpu"), onePath("solar", "acc"), iPipe) {
				rate := r.closed(p, m, p.Type(read.name), r.opt.Requests, 32)
				rows = append(rows, Row{Case: "ebs", Figure: "6.12",
					Setting: fmt.Sprintf("%s, %d cores", read.name, cores), Policy: m.name, Unit: read.unit,
					Value: rate * read.factor})
			}
			if err := r.setting(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// allReduce is figure 6.13: bytes of a message over the time until its last chunk is back, by size.
func (r *runner) allReduce() error {
	for size := 1 << 10; size <= 1<<30; size *= 4 {
		chunk := min(size, 256<<10)
		if size >= 8<<10 {
			chunk = min(chunk, size/8)
		}
		with := func(cores string) *paths.Plan {
			return plan("dml", "CHUNK", strconv.Itoa(chunk)+"B", "ADD-CPU", seconds(float64(chunk)/3e9), "ADD-ACC",
				seconds(float64(chunk)/200e9), "PEER-READ", seconds(float64(chunk)/6.25e9), "CORES", cores)
		}
		var rows []Row
		for _, m := range beside(onePath("open-mpi", "cpu"), onePath("nccl", "acc")) {
			p := with("2")
			if m.name == "open-mpi" {
				p = with("1") // one process per host
			}
			rows = append(rows, Row{Case: "dml", Figure: "6.13", Setting: sizeName(size), Policy: m.name, Unit: "GB/s",
				Value: float64(size) / r.makespan(p, m, (size+chunk-1)/chunk) / 1e9})
		}
		if err := r.setting(rows); err != nil {
			return err
		}
	}
	return nil
}

// slots is how many chunks of a message are under way: the buffers of a connection.
const slots = 16

// makespan is how long n chunks take that are all there at once, and leave as slots are free.
func (r *runner) makespan(p *paths.Plan, m maker, n int) float64 {
	t := make(paths.Trace, n)
	o := paths.Replay(p, m.make(p, t, r.key), paths.Load{Trace: t, Outstanding: slots, Delay: jitter(r.key.Fold(5))})
	return last(o.End)
}

func seconds(x float64) string { return strconv.FormatFloat(x*1e9, 'f', 3, 64) + "ns" }

func sizeName(size int) string {
	for _, u := range []struct {
		name string
		unit int
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if size >= u.unit {
			return fmt.Sprintf("%d %s", size/u.unit, u.name)
		}
	}
	return fmt.Sprintf("%d B", size)
}
