package train

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// zeroModels are those whose rows have zeros to leave out.
var zeroModels = []string{"gcn", "sage", "gin", "ressage+", "resgcn+"}

func sparseOptions(model, strategy string) Options {
	o := small(model)
	o.Model.Layers = 3
	var err error
	if o.Strategy, err = DefaultChoice("").Parse(strategy); err != nil {
		panic(err)
	}
	if o.Strategy.Name == "g3" {
		o.Strategy.Budget = 2 << 10 // bins of a few vertices
	}
	return o
}

// TestSparseRowsChangeNothing: rows without their zeros are the same rows. Where gradients go
// back as they are every bit is the same; where they go back masked, sums come in another order.
func TestSparseRowsChangeNothing(t *testing.T) {
	for j, strategy := range []string{"halo", "bns:1", "bns:0.5", "bns:0.5:cached", "pipegcn", "pipegcn:0", "g3", "g3:none", "granndis:0", "granndis:1",
		"granndis:eas", "neutronstar", "cagnet", "sancus", "sancus:variation:0.01", "skipg"} {
		for i := range 2 {
			o := sparseOptions(zeroModels[(j+3*i)%len(zeroModels)], strategy)
			o.Model.Norm = []string{"layer", "batch", "none"}[(i+j)%3]
			if o.Model.Norm == "none" && strings.HasPrefix(o.Model.Model, "res") {
				o.Model.Norm = "batch"
			}
			o.Inductive = (i+j)%4 == 0
			o.Strategy.Relay = i == 0 && slices.Contains([]string{"halo", "bns", "g3", "pipegcn", "neutronstar"}, o.Strategy.Name)
			o.Strategy.Means = i == 1 && strategy == "pipegcn"
			parts := cutForServers(t, communities(t, 120, j%2 == 0), []string{"random", "fennel"}[i], 4, 2)
			sparseIsDense(t, fmt.Sprintf("%s of %s, norm %s, relay %t", strategy, o.Model.Model, o.Model.Norm, o.Strategy.Relay), parts, o)
		}
	}
}

// sparseIsDense: on both devices.
func sparseIsDense(t *testing.T, label string, parts []*partition.Part, o Options) {
	t.Helper()
	for name, device := range map[string]func() tensor.Device{"float64": ref, "float32": single} {
		o.Strategy.SparseRows = false
		want := trainParts(t, parts, device, o)
		o.Strategy.SparseRows = true
		for k, r := range trainParts(t, parts, device, o) {
			same := slices.Equal(r.Loss, want[k].Loss) && slices.Equal(r.Val, want[k].Val)
			switch {
			case !o.Strategy.masks() && !same:
				t.Errorf("%s, %s: losses %v, with zeros %v", label, name, r.Loss, want[k].Loss)
			case name == "float64":
				sameCurve(t, label, r.Loss, want[k].Loss, 1e-9)
			default:
				sameCurve(t, label+", float32", r.Loss, want[k].Loss, 1e-3)
			}
		}
	}
}

// TestSparseRowsOfBF16: numbers of two bytes are left out alike.
func TestSparseRowsOfBF16(t *testing.T) {
	parts := cutForServers(t, communities(t, 120, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "g3", "pipegcn"} {
		o := sparseOptions("sage", strategy)
		o.Rows, o.Strategy.Relay = tensor.BF16, true
		want := trainParts(t, parts, single, o)
		o.Strategy.SparseRows = true
		for k, r := range trainParts(t, parts, single, o) {
			if strategy == "pipegcn" && !slices.Equal(r.Loss, want[k].Loss) {
				t.Errorf("%s: losses %v, with zeros %v", strategy, r.Loss, want[k].Loss)
			}
			sameCurve(t, strategy, r.Loss, want[k].Loss, 2e-2)
		}
	}
}

// hidden is what workers sent of a layer's rows and of their gradients, in all epochs.
func (r *trained) hidden(layer int16) (rows, gradients int64) {
	for _, sent := range r.counted {
		for k, bytes := range sent {
			switch {
			case k.Layer == layer && k.Kind == wire.Activation:
				rows += bytes
			case k.Layer == layer && k.Kind == wire.Gradient:
				gradients += bytes
			}
		}
	}
	return rows, gradients
}

// TestSparseRowsSendFewerBytes: with a dropout of a half three of four numbers stay at home,
// forwards for a bit a number. Without dropout it is one of two.
func TestSparseRowsSendFewerBytes(t *testing.T) {
	parts := cutForServers(t, communities(t, 200, false), "random", 4, 2)
	for _, strategy := range []string{"halo", "g3", "bns:0.5", "granndis:0", "neutronstar", "pipegcn", "cagnet"} {
		for _, dropout := range []float64{0.5, 0} {
			o := sparseOptions("sage", strategy)
			o.Epochs, o.EvalEvery, o.Model.Hidden, o.Model.Dropout = 4, 0, 64, dropout
			if strategy == "neutronstar" {
				o.Strategy.Budget = 1 // all is received
			}
			o.Strategy.Relay = strategy == "g3"
			rows, gradients := trainServers(t, parts, onCPU, o).hidden(1)
			o.Strategy.SparseRows = true
			less, lessBack := trainServers(t, parts, onCPU, o).hidden(1)
			most, least := 0.33, 0.22 // a measuring pass among five forwards has no dropout
			if dropout == 0 {
				most, least = 0.6, 0.4
			}
			if share := float64(less) / float64(rows); share > most+0.03 || share < least+0.03 {
				t.Errorf("%s, dropout %g: rows take %.3f of their bytes", strategy, dropout, share)
			}
			if !o.Strategy.masks() {
				most, least = 1, 1
			}
			if share := float64(lessBack) / float64(gradients); share > most || share < least {
				t.Errorf("%s, dropout %g: gradients take %.3f of their bytes", strategy, dropout, share)
			}
		}
	}
}

// TestSparseRowsOnOddParts: a worker without border, one without training vertices, more
// workers than useful.
func TestSparseRowsOnOddParts(t *testing.T) {
	d, odd := oddParts(t)
	for _, strategy := range []string{"halo", "g3"} {
		o := sparseOptions("gcn", strategy)
		want := mustTrain(t, tensor.NewRef(), d, o)
		o.Strategy.SparseRows = true
		for what, parts := range odd {
			for _, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, strategy+", "+what, r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// TestSparseRowsResume: what strategies keep of rows is what it is with zeros.
func TestSparseRowsResume(t *testing.T) {
	parts := cutForServers(t, communities(t, 90, false), "hash", 4, 2)
	for _, strategy := range []string{"halo", "pipegcn", "bns:0.5:cached"} {
		o := sparseOptions("sage", strategy)
		o.Epochs, o.EvalEvery = 7, 2
		o.Strategy.Relay, o.Strategy.SparseRows = true, true
		want := trainParts(t, parts, single, o)[0].Loss
		for _, at := range []int{1, 4} {
			if got := resumedAt(t, parts, o, at); !slices.Equal(got, want) {
				t.Errorf("%s, saved after %d: %v, never stopped %v", strategy, at, got, want)
			}
		}
	}
}

// lying is a worker whose messages of hidden rows are not what they should be.
type lying struct {
	wire.Endpoint
	lie func(payload []byte) []byte
}

func (e lying) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if kind == wire.Activation && key.Coflow.Layer == 1 {
		payload = e.lie(slices.Clone(payload))
	}
	return e.Endpoint.Send(to, key, kind, payload)
}

// TestSparseRowsThatLie: counts that do not fit end all workers with words, whoever gets them.
func TestSparseRowsThatLie(t *testing.T) {
	parts := cutForServers(t, communities(t, 120, false), "random", 4, 2)
	for _, c := range []struct {
		want string
		lie  func(payload []byte) []byte
	}{
		{"bytes of numbers came where bits stand for", func(b []byte) []byte { b[0] ^= 1; return b }},
		{"bytes of numbers came where bits stand for", func(b []byte) []byte { return b[:len(b)-4] }},
		{"bytes of numbers came where bits stand for", func(b []byte) []byte { return b[:len(b)-1] }},
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
			o := sparseOptions("gcn", name)
			o.Strategy.SparseRows, o.Strategy.Relay = true, relay
			for k, err := range trainLying(parts, o, c.lie) {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s: rank %d: %v, want %q", strategy, k, err, c.want)
				}
			}
		}
	}
}

// trainLying trains with a worker that lies, and returns what all end with.
func trainLying(parts []*partition.Part, o Options, lie func([]byte) []byte) []error {
	ends, errs := wire.NewGroup(len(parts), wire.DefaultOptions()), make([]error, len(parts))
	var wg sync.WaitGroup
	for k := range parts {
		end := ends[k]
		if k == 1 {
			end = lying{end, lie}
		}
		wg.Go(func() {
			dev := single()
			defer dev.Close()
			ctx := context.Background()
			_, errs[k] = Worker(ctx, dev, parts[k], end, NewGroup(ctx, end, dev, parts[k].Book.Servers), o, nil)
		})
	}
	wg.Wait()
	for _, e := range ends {
		e.Close()
	}
	return errs
}

// TestSparseRowsWithoutUse: models without such rows are refused, and rows that are rounded.
func TestSparseRowsWithoutUse(t *testing.T) {
	p := cut(t, communities(t, 60, false), "random", 2)[0]
	dev := tensor.NewRef()
	for _, c := range []struct {
		model  string
		layers int
		works  bool
	}{{"gat", 3, false}, {"film", 3, false}, {"gcn", 2, false}, {"sage", 1, false}, {"gcn", 3, true}, {"gin", 2, true}, {"resgcn+", 2, true}} {
		o := sparseOptions(c.model, "halo")
		o.Model.Layers, o.Strategy.SparseRows = c.layers, true
		_, err := PlanOnPaper(p, wire.NewGroup(2, wire.DefaultOptions())[0], dev, nn.New(dev, o.Model, 1), nn.Classify{}, o)
		if c.works != (err == nil) || err != nil && !strings.Contains(err.Error(), "--sparse-rows") {
			t.Errorf("%s of %d layers: %v", c.model, c.layers, err)
		}
	}
	both := DefaultChoice("")
	both.SparseRows, both.WireRows = true, "bf16"
	if _, err := both.Parse("halo"); err == nil || !strings.Contains(err.Error(), "--wire-dtype") {
		t.Errorf("rounded rows: %v", err)
	}
}

// FuzzSparseRows: whatever a peer sends is rows that make the same message again, or an error.
func FuzzSparseRows(f *testing.F) {
	f.Add([]byte{}, 1, 1)
	f.Add([]byte{5, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 3)
	f.Add(make([]byte, 16), 2, 33)
	dev := tensor.NewCPU(1)
	f.Fuzz(func(t *testing.T, message []byte, rows, cols int) {
		if rows < 1 || cols < 1 || rows > 100 || cols > 100 || len(message) > rows*(cols+3)*8 {
			return
		}
		x := &exchange{m: &exact{site: &site{dev: dev}}, zeros: &zeros{}, in: dev.New(tensor.F32, rows, cols)}
		x.out = x.in
		defer dev.Free(x.in)
		n, err := x.bitsIn(message, rows)
		if err != nil {
			return
		}
		bits := slices.Clone(message[:n]) // where numbers are whole, as the wire's rooms are
		dev.Expand(x.in, slices.Clone(message[n:]), bits)
		again := make([]byte, rows*x.zeros.most(tensor.F32, cols))
		k := dev.Compress(again[n:], x.in, bits)
		if copy(again, bits); !slices.Equal(again[:n+k], message) {
			t.Errorf("%v became %v", message, again[:n+k])
		}
	})
}
