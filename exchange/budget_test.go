package exchange

import (
	"errors"
	"testing"

	"starling/graph"
	"starling/wire"
)

func TestMemoryBudget(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "1": 1, "100B": 100, "2KiB": 2048, "4GiB": 4 << 30,
		"1.5 MB": 1500000, "3kib": 3 << 10, "1TB": 1e12} {
		o := BudgetOption{text}
		if err := o.Validate(); err != nil || o.Bytes() != want {
			t.Errorf("%q: %d, %v", text, o.Bytes(), err)
		}
	}
	for _, text := range []string{"much", "-1GiB", "0", "4 Gigs", "GiB", "NaN", "1e30", "4GiBB"} {
		if err := (BudgetOption{text}).Validate(); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := (BudgetOption{"2KiB"}).ReplicaBytes(8); got != 2048 {
		t.Errorf("%d of what was asked for", got)
	}
	if one, many := (BudgetOption{}).ReplicaBytes(1), (BudgetOption{}).ReplicaBytes(1<<20); one < 0 || many > one/1000 {
		t.Errorf("%d for one worker, %d for each of many", one, many)
	}
}

// TestBudgetOfABeginning: a resumed run has the budget it began with, and one that was asked
// for in any case.
func TestBudgetOfABeginning(t *testing.T) {
	saved := &Saved{}
	begun := &Worker{Saved: saved, End: lone{}}
	first := begun.Budget(BudgetOption{})
	again := &Worker{Saved: &Saved{Tensors: saved.Figures}, MemoryOnly: true}
	if got := again.Budget(BudgetOption{}); got != first {
		t.Errorf("%d, began with %d", got, first)
	}
	if got := again.Budget(BudgetOption{"1KiB"}); got != 1024 {
		t.Error(got)
	}
	if got := (&Worker{Saved: &Saved{}, MemoryOnly: true}).Budget(BudgetOption{}); got != 0 {
		t.Errorf("a dry run knows of %d", got)
	}
}

// lone is the endpoint of a worker without others.
type lone struct{ wire.Endpoint }

func (lone) Size() int { return 0 }
