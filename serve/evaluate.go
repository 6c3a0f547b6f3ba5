package serve

import (
	"starling/graph"
	"starling/nn"
)

// evaluate makes the report by class of what logits predict for the test split, or for validation or training vertices
// where there is no test split, or for all vertices with a label where there are no splits.
func (p *Predictions) evaluate(t *Trained, logits rows, d *graph.Dataset, task string) {
	l := d.Labels
	if l == nil || nn.TaskOf(l.Kind()) != task || task != nn.TaskClassify && l.Classes != logits.width {
		return
	}
	split, ids := "test", d.Splits.Test
	if len(ids) == 0 {
		split, ids = "val", d.Splits.Val
	}
	if len(ids) == 0 {
		split, ids = "train", d.Splits.Train
	}
	if len(ids) == 0 {
		split = "labelled"
		for v := range uint32(l.Len()) {
			if l.Has(int(v)) {
				ids = append(ids, v)
			}
		}
	}
	j, same := t.Config.judge(task), sameClasses(p.ClassNames, l)
	if task == nn.TaskClassify && len(t.Config.Threshold) == 0 && logits.width == 2 {
		counts := make([]float64, 2)
		for _, v := range d.Splits.Train {
			if c := same(l.Class[v]); c >= 0 && c < 2 {
				counts[c]++
			}
		}
		j.Positive = nn.Positive(counts)
	}
	tally := make(nn.Tally, j.Width())
	scores := make([][]float64, len(j.Scored()))
	positive := make([][]bool, len(scores))
	outputs := make([]float64, logits.width)
	for _, v := range ids {
		for i, x := range logits.of(v) {
			outputs[i] = float64(x)
		}
		is := func(class int) bool { return l.Multi != nil && l.Row(int(v))[class] == 1 }
		switch task {
		case nn.TaskRegression:
			nn.ErrorCounts(tally).Add(l.Numbers(int(v)), outputs)
			continue
		case nn.TaskMultiLabel:
			j.AddMarks(tally, outputs, is)
		default:
			known := int(same(l.Class[v]))
			if known < 0 || known >= logits.width {
				return // the model knows other classes
			}
			j.AddClass(tally, outputs, known)
			is = func(class int) bool { return class == known }
		}
		for i, class := range j.Scored() {
			scores[i], positive[i] = append(scores[i], j.Score(outputs, class)), append(positive[i], is(class))
		}
	}
	if p.Evaluation = j.Evaluation(tally, split); p.Evaluation == nil || task == nn.TaskRegression {
		return
	}
	var all []*nn.Scored
	for i := range scores {
		all = append(all, nn.NewScored(scores[i], positive[i]))
	}
	p.Evaluation.AddScores(all)
	p.Evaluation.NameClasses(p.ClassNames)
}
