package serve

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
)

// TestExportNames holds the names and shapes of FORMATS; scripts/peers/export-check
// compares numbers with the real libraries.
func TestExportNames(t *testing.T) {
	d := block(t)
	for _, c := range []struct{ model, library, want string }{
		{"gcn", "pyg", "convs.0.bias[16] convs.0.lin.weight[16 12] convs.1.bias[4] convs.1.lin.weight[4 16]"},
		{"gcn", "dgl", "convs.0.bias[16] convs.0.weight[12 16] convs.1.bias[4] convs.1.weight[16 4]"},
		{"sage-gcn", "pyg", "convs.0.lin_l.bias[16] convs.0.lin_l.weight[16 12] convs.1.lin_l.bias[4] convs.1.lin_l.weight[4 16]"},
		{"gat-mean", "dgl", "convs.0.attn_l[1 2 8] convs.0.attn_r[1 2 8] convs.0.bias[16] convs.0.fc.weight[16 12] " +
			"convs.1.attn_l[1 3 4] convs.1.attn_r[1 3 4] convs.1.bias[12] convs.1.fc.weight[12 16]"},
		{"gat", "pyg", "convs.0.att_dst[1 4 4] convs.0.att_src[1 4 4] convs.0.bias[16] convs.0.lin.weight[16 12] " +
			"convs.1.att_dst[1 1 4] convs.1.att_src[1 1 4] convs.1.bias[4] convs.1.lin.weight[4 16]"},
		{"sage-pool", "pyg", "convs.0.lin.bias[12] convs.0.lin.weight[12 12] convs.0.lin_l.bias[16] convs.0.lin_l.weight[16 12] convs.0.lin_r.weight[16 12] " +
			"convs.1.lin.bias[16] convs.1.lin.weight[16 16] convs.1.lin_l.bias[4] convs.1.lin_l.weight[4 16] convs.1.lin_r.weight[4 16]"},
		{"sage-pool", "dgl", "convs.0.fc_neigh.weight[16 12] convs.0.fc_pool.bias[12] convs.0.fc_pool.weight[12 12] convs.0.fc_self.bias[16] convs.0.fc_self.weight[16 12] " +
			"convs.1.fc_neigh.weight[4 16] convs.1.fc_pool.bias[16] convs.1.fc_pool.weight[16 16] convs.1.fc_self.bias[4] convs.1.fc_self.weight[4 16]"},
		{"gatv2", "dgl", "convs.0.attn[1 2 8] convs.0.fc_dst.bias[16] convs.0.fc_dst.weight[16 12] convs.0.fc_src.bias[16] convs.0.fc_src.weight[16 12] " +
			"convs.1.attn[1 3 4] convs.1.fc_dst.bias[12] convs.1.fc_dst.weight[12 16] convs.1.fc_src.bias[12] convs.1.fc_src.weight[12 16]"},
		{"mlp", "pyg", "convs.0.bias[16] convs.0.weight[16 12] convs.1.bias[4] convs.1.weight[4 16]"},
		{"mlp", "dgl", "convs.0.bias[16] convs.0.weight[16 12] convs.1.bias[4] convs.1.weight[4 16]"},
		{"ressage+", "pyg", "convs.0.lin_l.bias[16] convs.0.lin_l.weight[16 16] convs.0.lin_r.weight[16 16] " +
			"convs.1.lin_l.bias[16] convs.1.lin_l.weight[16 16] convs.1.lin_r.weight[16 16] encoder.bias[16] encoder.weight[16 12] " +
			"head.bias[4] head.weight[4 16] norms.0.bias[16] norms.0.weight[16] norms.1.bias[16] norms.1.weight[16]"},
	} {
		dir := filepath.Join(t.TempDir(), "export")
		if _, err := trained(t, models[c.model], d).Export(c.library, dir); err != nil {
			t.Fatal(err)
		}
		weights, _, err := nn.LoadSafetensors(filepath.Join(dir, weightsFile))
		if err != nil || !IsExport(dir) {
			t.Fatal(err)
		}
		var names []string
		for _, w := range weights {
			names = append(names, fmt.Sprint(w.Name, w.Shape))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s for %s:\n%s\nwant\n%s", c.model, c.library, got, c.want)
		}
	}
	for _, c := range []struct{ model, library string }{{"film", "dgl"}, {"gcn", "tf"}} {
		dir := filepath.Join(t.TempDir(), "export")
		if _, err := trained(t, models[c.model], d).Export(c.library, dir); !errors.Is(err, graph.ErrInput) ||
			IsExport(dir) {
			t.Errorf("%s for %s: %v", c.model, c.library, err)
		}
	}
}

// TestExportOfWeighted: the export names weights of edges, or refuses the model where a library's
// layer would not look at them as ours does.
func TestExportOfWeighted(t *testing.T) {
	d := block(t)
	for _, c := range []struct {
		model, library string
		named, refused bool
	}{
		{"gcn", "pyg", true, false}, {"gin", "dgl", true, false}, {"gat", "pyg", false, false}, {"film", "pyg", false,
			false}, {"sage-pool", "dgl", false, false},
		{"sage", "pyg", true, false}, {"sage", "dgl", true, false}, {"sage-gcn", "pyg", true, false},
		{"gin", "pyg", true, false}, {"resgcn+", "pyg", true, false}, {"ressage+", "dgl", true, false},
		{"mlp", "pyg", false, false},
		{"sage-gcn", "dgl", false, true}, {"gcn", "dgl", false, true}, {"resgcn+", "dgl", false, true},
	} {
		run := trained(t, models[c.model], d)
		run.Config.EdgeWeights = true
		e, err := run.Export(c.library, filepath.Join(t.TempDir(), "export"))
		if errors.Is(err, graph.ErrInput) != c.refused || err == nil && e.EdgeWeights != c.named {
			t.Errorf("%s for %s: %+v, %v", c.model, c.library, e, err)
		}
	}
}

// TestExportOfDecoder: every weight is one of what config.json says to build.
func TestExportOfDecoder(t *testing.T) {
	d := block(t)
	config := models["sage"]
	config.Decoder = "mlp"
	dir := filepath.Join(t.TempDir(), "export")
	e, err := trained(t, config, d).Export("pyg", dir)
	if err != nil {
		t.Fatal(err)
	}
	weights, _, err := nn.LoadSafetensors(filepath.Join(dir, weightsFile))
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string]string{}
	for _, w := range weights {
		shapes[w.Name] = fmt.Sprint(w.Shape)
	}
	for i, w := range e.Decoder {
		if got, want := shapes[fmt.Sprintf("decoder.%d.weight", i)], fmt.Sprint([]int{w[1], w[0]}); got != want {
			t.Errorf("map %d of the decoder: found %s, want %s", i, got, want)
		}
	}
	if len(e.Decoder) != 2 {
		t.Errorf("a decoder of %d maps", len(e.Decoder))
	}
}

// TestResidualNorms: the norm of the first layer is the last that is used.
func TestResidualNorms(t *testing.T) {
	c := models["resgcn+"]
	for name, want := range map[string]string{"layers.0.conv.lin.weight": "convs.0.lin.weight",
		"layers.1.norm.weight": "norms.0.weight", "layers.2.norm.running_mean": "norms.1.running_mean",
		"layers.0.norm.bias": "norms.2.bias", "node_encoder.weight": "encoder.weight", "lin.bias": "head.bias",
		"layers.2.conv.lin.weight": "convs.2.lin.weight"} {
		if got := plainName(&c, name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}
