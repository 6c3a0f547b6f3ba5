package report

import "strings"

// Measures are the measures that belong to a task, of the test split at the best epoch. Those
// of other tasks are left out.
type Measures struct {
	MicroF1 *Number `json:"micro_f1,omitempty"` // multilabel
	R2      *Number `json:"r2,omitempty"`       // regression
	MSE     *Number `json:"mse,omitempty"`
	AUC     *Number `json:"auc,omitempty"` // link, unsupervised
	MRR     *Number `json:"mrr,omitempty"`
	// Hits[k] is the share of ranks that are at most k.
	Hits map[string]Number `json:"hits,omitempty"`
}

// MeasuresOf takes the measures by the names that tasks give them.
func MeasuresOf(m map[string]float64) (out Measures) {
	for name, to := range map[string]**Number{
		"micro_f1": &out.MicroF1, "r2": &out.R2, "mse": &out.MSE, "auc": &out.AUC, "mrr": &out.MRR,
	} {
		if x, ok := m[name]; ok {
			n := Number(x)
			*to = &n
		}
	}
	for name, x := range m {
		if k, ok := strings.CutPrefix(name, "hits@"); ok {
			if out.Hits == nil {
				out.Hits = map[string]Number{}
			}
			out.Hits[k] = Number(x)
		}
	}
	return out
}
