package train_test

import (
	"context"
	"fmt"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// TestLinkLearns: held-out edges are found well above chance, with both decoders and in
// bfloat16. In batches it is train/mini's to say.
func TestLinkLearns(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 2)
	for _, c := range []struct {
		model, decoder string
		rows           tensor.DType
	}{{"gcn", "dot", tensor.F32}, {"sage", "mlp", tensor.BF16}} {
		o := traintest.LinkModel(c.model, c.decoder)
		o.Epochs, o.Rows = 60, c.rows
		r := traintest.Link(t, traintest.CPU(t, 2), d, o, traintest.HeldOut(t, d.Graph, 3))
		traintest.FindsEdges(t, fmt.Sprintf("%s, %s", c.model, c.decoder), r)
	}
}

// TestHeldOutEdgesChangeNothing: a training run knows nothing of the edges held out.
// Without some of them, and with others in their place, it has the same bits.
func TestHeldOutEdgesChangeNothing(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	other := &graph.Dataset{Graph: traintest.OtherHeldOut(t, d.Graph), Features: d.Features, Meta: d.Meta}
	o := traintest.LinkModel("sage", "mlp")
	o.Epochs = 4
	link := func(d *graph.Dataset) *train.Result {
		return traintest.Link(t, traintest.CPU(t, 1), d, o, traintest.HeldOut(t, d.Graph, 3))
	}
	traintest.SameButTest(t, link(d), link(other))
}

// TestLinkResumes: a run in two has the bits of a run in one.
func TestLinkResumes(t *testing.T) {
	d := traintest.Communities(t, 150, true)
	o, l := traintest.LinkModel("sage", "mlp"), traintest.HeldOut(t, d.Graph, 3)
	traintest.ResumesLinks(t, o, func(o train.Options) *train.Result {
		return traintest.Link(t, traintest.CPU(t, 1), d,
			o, l)
	})
}

func TestLinkRefuses(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	for name, change := range map[string]func(*train.Options){
		"no decoder": func(o *train.Options) { o.Model.Decoder = "" },
		"inductive":  func(o *train.Options) { o.Inductive = true },
	} {
		o := traintest.LinkModel("gcn", "dot")
		change(&o)
		if _, err := train.Link(context.Background(), traintest.Ref(), d, o, traintest.HeldOut(t, d.Graph, 3),
			nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnsupervisedEmbeddings: embeddings learnt without labels beat the raw features, which
// say little of the classes.
func TestUnsupervisedEmbeddings(t *testing.T) {
	d := traintest.BlockGraph(t, 600, 0.7)
	o := traintest.LinkModel("sage", "dot")
	o.Epochs, o.Model.Out, o.Model.Dropout, o.EvalEvery = 40, 16, 0, 10
	dev := traintest.CPU(t, 2)
	traintest.BeatsFeatures(t, dev, d, o, traintest.Link(t, dev, d, o, traintest.Walks(t, d.Graph)))
}
