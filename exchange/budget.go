package exchange

import (
	"fmt"
	"strconv"
	"strings"

	"starling/graph"
	"starling/tensor"
	"starling/wire"
)

// BudgetOption is an option of strategies that fill memory as far as they may.
type BudgetOption struct {
	MemoryBudget string `json:"memory_budget" resume:"free" omit:"default" help:"memory of a worker that strategies may fill, as 4GiB; none: what is free"`
}

// Bytes is the budget; 0: none was given. REQUIRES: it was validated.
func (o BudgetOption) Bytes() int64 {
	bytes, _ := o.parse()
	return bytes
}

// Validate refuses what is no amount of memory.
func (o BudgetOption) Validate() error {
	_, err := o.parse()
	return err
}

var byteUnits = map[string]float64{"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

func (o BudgetOption) parse() (int64, error) { return ParseBytes("--memory-budget", o.MemoryBudget) }

// ParseBytes reads an amount of memory that a flag gives; 0: none.
func ParseBytes(flag, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimRight(text, "KMGTiBkb ")
	unit, ok := byteUnits[strings.ToUpper(strings.TrimSpace(text[len(number):]))]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !ok || !(v > 0 && v*unit < 1<<60) {
		return 0, &graph.InputError{Field: flag, Found: fmt.Sprintf("%q", text),
			Want: "an amount of memory", Fix: "for example 4GiB"}
	}
	return int64(v * unit), nil
}

// ReplicaBytes is the memory that one of a host's workers may fill with
// replicas: what was asked for, else its share of half of what is free; 0: unknown.
func (o BudgetOption) ReplicaBytes(workers int) int64 {
	if bytes := o.Bytes(); bytes > 0 {
		return bytes
	}
	return tensor.MemoryFree() / 2 / int64(max(workers, 1))
}

// Budget is the memory a worker may fill with replicas. Without --memory-budget it is what was
// free when the run began, so that a resumed run chooses as before.
func (w *Worker) Budget(o BudgetOption) int64 {
	if bytes := o.Bytes(); bytes > 0 {
		return bytes
	}
	list, err := w.Figures("memory", 1, func() ([]float64, error) {
		here := 0
		for q := range w.End.Size() {
			if w.End.Link(q) != wire.BetweenServers {
				here++
			}
		}
		return []float64{float64(o.ReplicaBytes(here) >> 20 << 20)}, nil // whole MiB, as it is printed
	})
	if err != nil { // of a dry run
		return 0
	}
	return int64(list[0])
}
