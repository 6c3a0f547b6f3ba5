package full

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// zeroModels are those whose rows have zeros to leave out.
var zeroModels = []string{"gcn", "sage", "gin", "ressage+", "resgcn+"}

// sparseOptions are the options of a strategy for a model of three layers.
func sparseOptions(t *testing.T, model, strategy string, options ...string) train.Options {
	t.Helper()
	o := traintest.Small(model)
	o.Model.Layers = 3
	if train.NameOf(strategy) == "g3" {
		options = append(options, "memory_budget=2KiB") // bins of a few vertices
	}
	o.Strategy = traintest.Strategy(t, strategy, append(options, rated(strategy, o.Model.Layers))...)
	return o
}

// sparsely is a strategy without and with --sparse-rows.
func sparsely(t *testing.T, strategy string, options ...string) (dense, sparse train.Choice) {
	t.Helper()
	dense = sparseOptions(t, "gcn", strategy, options...).Strategy
	return dense, sparseOptions(t, "gcn", strategy, append(slices.Clone(options), "sparse_rows")...).Strategy
}

// masked are the strategies whose gradients travel only where their rows are not zero: rows
// and gradients are of one pass.
var masked = []string{"halo", "bns:1", "bns:0.5", "pipegcn:0", "g3", "g3:none", "granndis:0", "granndis:1",
	"granndis:eas", "neutronstar"}

// TestSparseRowsChangeNothing: rows without their zeros are the same rows. Where gradients
// return as they are every bit is the same; where they return masked, sums are made in
// another order.
func TestSparseRowsChangeNothing(t *testing.T) {
	for j, strategy := range []string{"halo", "bns:1", "bns:0.5", "bns:0.5:cached", "pipegcn", "pipegcn:0", "g3",
		"g3:none", "granndis:0", "granndis:1",
		"granndis:eas", "neutronstar", "cagnet", "sancus", "sancus:variation:0.01", "skipg"} {
		for i := range 2 {
			model := zeroModels[(j+3*i)%len(zeroModels)]
			relay := i == 0 && has(strategy, "relay")
			dense, sparse := sparsely(t, strategy, optionIf(relay, "relay"),
				optionIf(i == 1 && strategy == "pipegcn", "means"))
			o := sparseOptions(t, model, strategy)
			o.Model.Norm = []string{"layer", "batch", "none"}[(i+j)%3]
			if o.Model.Norm == "none" && strings.HasPrefix(model, "res") {
				o.Model.Norm = "batch"
			}
			o.Inductive = (i+j)%4 == 0
			parts := traintest.CutForServers(t, traintest.Communities(t, 120, j%2 == 0),
				[]string{"random", "fennel"}[i], 4, 2)
			label := fmt.Sprintf("%s of %s, norm %s, relay %t", strategy, model, o.Model.Norm, relay)
			sparseIsDense(t, label, parts, o, dense, sparse, slices.Contains(masked, strategy))
		}
	}
}

// sparseIsDense: on both devices.
func sparseIsDense(t *testing.T, label string, parts []*partition.Part, o train.Options, dense, sparse train.Choice,
	masked bool) {
	t.Helper()
	for name, device := range map[string]func() tensor.Device{"float64": traintest.Ref, "float32": traintest.Single} {
		o.Strategy = dense
		want := traintest.TrainParts(t, parts, device, o)
		o.Strategy = sparse
		for k, r := range traintest.TrainParts(t, parts, device, o) {
			same := slices.Equal(r.Loss, want[k].Loss) && slices.Equal(r.Val, want[k].Val)
			switch {
			case !masked && !same:
				t.Errorf("%s, %s: losses %v, with zeros %v", label, name, r.Loss, want[k].Loss)
			case name == "float64":
				traintest.SameCurve(t, label, r.Loss, want[k].Loss, 1e-9)
			default:
				traintest.SameCurve(t, label+", float32", r.Loss, want[k].Loss, 1e-3)
			}
		}
	}
}

// TestSparseRowsOfBF16: numbers of two bytes are left out alike.
func TestSparseRowsOfBF16(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "g3", "pipegcn"} {
		o := sparseOptions(t, "sage", strategy)
		dense, sparse := sparsely(t, strategy, "relay")
		o.Rows, o.Strategy = tensor.BF16, dense
		want := traintest.TrainParts(t, parts, traintest.Single, o)
		o.Strategy = sparse
		for k, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
			if strategy == "pipegcn" && !slices.Equal(r.Loss, want[k].Loss) {
				t.Errorf("%s: losses %v, with zeros %v", strategy, r.Loss, want[k].Loss)
			}
			traintest.SameCurve(t, strategy, r.Loss, want[k].Loss, 2e-2)
		}
	}
}

// hidden is what workers sent of layer 1's rows and of their gradients, in all epochs.
func hidden(r *traintest.Trained) (rows, gradients float64) {
	of := func(kind wire.Kind) float64 {
		return float64(r.Sum(func(c wire.Class) bool { return c.Layer == 1 && c.Kind == kind }))
	}
	return of(wire.Activation), of(wire.Gradient)
}

// TestSparseRowsSendFewerBytes: with a dropout of a half three of four numbers do not
// travel, forward for a bit per number. Without dropout it is one of two.
func TestSparseRowsSendFewerBytes(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 200, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "g3", "bns:0.5", "granndis:0", "neutronstar", "pipegcn", "cagnet"} {
		for _, dropout := range []float64{0.5, 0} {
			o := sparseOptions(t, "sage", strategy)
			o.Epochs, o.EvalEvery, o.Model.Hidden, o.Model.Dropout = 4, 0, 64, dropout
			dense, sparse := sparsely(t, strategy, optionIf(strategy == "neutronstar", "memory_budget=1B"),
				optionIf(strategy == "g3", "relay"))
			o.Strategy = dense
			rows, gradients := hidden(traintest.TrainServers(t, parts, traintest.Single, o))
			o.Strategy = sparse
			less, lessBack := hidden(traintest.TrainServers(t, parts, traintest.Single, o))
			most, least := 0.33, 0.22 // a measuring pass among five forward ones has no dropout
			if dropout == 0 {
				most, least = 0.6, 0.4
			}
			if share := less / rows; share > most+0.03 || share < least+0.03 {
				t.Errorf("%s, dropout %g: rows take %.3f of their bytes", strategy, dropout, share)
			}
			if !slices.Contains(masked, strategy) {
				most, least = 1, 1
			}
			if share := lessBack / gradients; share > most || share < least {
				t.Errorf("%s, dropout %g: gradients take %.3f of their bytes", strategy, dropout, share)
			}
		}
	}
}

// TestSparseRowsOnOddParts: a worker without a halo, one without training vertices, more
// workers than useful.
func TestSparseRowsOnOddParts(t *testing.T) {
	d, odd := traintest.OddParts(t)
	for _, strategy := range []string{"halo", "g3"} {
		o := sparseOptions(t, "gcn", strategy)
		want := traintest.Full(t, traintest.Ref(), d, o)
		_, o.Strategy = sparsely(t, strategy)
		for what, parts := range odd {
			for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
				traintest.SameCurve(t, strategy+", "+what, r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// TestSparseRowsResume: what strategies keep of rows is the same as with zeros.
func TestSparseRowsResume(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "hash", 4, 2)
	for _, strategy := range []string{"halo", "pipegcn", "bns:0.5:cached"} {
		o := sparseOptions(t, "sage", strategy, "relay", "sparse_rows")
		o.Epochs, o.EvalEvery = 7, 2
		for _, at := range []int{1, 4} {
			if want, got := traintest.Resumed(t, parts, o, at, true); !slices.Equal(got.Loss, want.Loss) {
				t.Errorf("%s, saved after %d: %v, never stopped %v", strategy, at, got.Loss, want.Loss)
			}
		}
	}
}

// corrupting is a worker whose messages of hidden rows are not what they should be.
type corrupting struct {
	wire.Endpoint
	corrupt func(payload []byte) []byte
}

func (e corrupting) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if kind == wire.Activation && key.Coflow.Layer == 1 {
		payload = e.corrupt(slices.Clone(payload))
	}
	return e.Endpoint.Send(to, key, kind, payload)
}

// TestCorruptSparseRows: counts that do not fit end all workers with an error that says
// so, at whichever receiver.
func TestCorruptSparseRows(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 120, false), "random", 4, 2)
	for _, c := range []struct {
		want    string
		corrupt func(payload []byte) []byte
	}{
		{"bytes of numbers arrived where bits stand for", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"bytes of numbers arrived where bits stand for", func(b []byte) []byte { return b[:len(b)-4] }},
		{"bytes of numbers arrived where bits stand for", func(b []byte) []byte { return b[:len(b)-1] }},
		{"alone are", func(b []byte) []byte { return b[:2] }},
		{"alone are", func(b []byte) []byte { return nil }},
		{"beyond the 16 columns", func(b []byte) []byte {
			b[0] &= b[0] - 1 // as many as before
			b[3] |= 0x80
			return b
		}},
		{"asked for at most", func(b []byte) []byte { return append(b, make([]byte, 1<<20)...) }},
	} {
		for _, strategy := range []string{"halo", "halo+relay", "g3", "g3+relay", "pipegcn+relay", "cagnet"} {
			name, _, relay := strings.Cut(strategy, "+")
			o := sparseOptions(t, "gcn", name, "sparse_rows", optionIf(relay, "relay"))
			for k, err := range trainCorrupting(parts, o, c.corrupt) {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: rank %d: %v, want %q", strategy, k, err, c.want)
				}
			}
		}
	}
}

// trainCorrupting trains with a worker that corrupts its rows, and returns what all end with.
func trainCorrupting(parts []*partition.Part, o train.Options, corrupt func([]byte) []byte) []error {
	ends, errs := traintest.Ends(len(parts)), make([]error, len(parts))
	defer traintest.Close(ends)
	traintest.Each(len(parts), func(k int) {
		end := ends[k]
		if k == 1 {
			end = corrupting{end, corrupt}
		}
		_, errs[k] = traintest.Work(parts[k], end, traintest.Single, o, nil)
	})
	return errs
}

// TestSparseRowsWithoutUse: models without such rows are refused, and rows that are rounded.
func TestSparseRowsWithoutUse(t *testing.T) {
	p := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)[0]
	for _, c := range []struct {
		model  string
		layers int
		works  bool
	}{{"gat", 3, false}, {"film", 3, false}, {"gcn", 2, false}, {"sage", 1, false}, {"gcn", 3, true}, {"gin", 2, true},
		{"resgcn+", 2, true}} {
		o := sparseOptions(t, c.model, "halo", "sparse_rows")
		o.Model.Layers = c.layers
		_, err := traintest.Plan(p, traintest.Ends(2)[0], o)
		if c.works != (err == nil) || err != nil && !strings.Contains(err.Error(), "--sparse-rows") {
			t.Errorf("%s of %d layers: %v", c.model, c.layers, err)
		}
	}
	if _, err := traintest.Choose("halo", "sparse_rows", "wire_dtype=bf16"); err == nil ||
		!strings.Contains(err.Error(), "--wire-dtype") {
		t.Errorf("rounded rows: %v", err)
	}
}
