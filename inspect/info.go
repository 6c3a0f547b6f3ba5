package inspect

import "starling/report"

// Info is what can be said about a dataset in one pass over it.
type Info struct {
	Name      string    `json:"name"`
	Vertices  int64     `json:"vertices"`
	Edges     int64     `json:"edges"`
	Symmetric bool      `json:"symmetric"`
	Weighted  bool      `json:"weighted"`
	EdgeDim   int       `json:"edge_dim,omitempty"`
	SelfLoops int64     `json:"self_loops"`
	Isolated  int64     `json:"isolated"` // vertices without in-edges
	Degree    Quantiles `json:"degree"`   // in-edges of a vertex
	// Components are weakly connected: directions do not count.
	Components       int64 `json:"components"`
	LargestComponent int64 `json:"largest_component"`

	Features        int           `json:"features"`
	FeatureKind     string        `json:"feature_kind,omitempty"`
	FeatureDensity  report.Number `json:"feature_density"` // share of features that are not zero
	Task            string        `json:"task,omitempty"`  // single-label, multi-label or regression
	Classes         int           `json:"classes"`
	ClassSizes      []int64       `json:"class_sizes,omitempty"`
	ClassNames      []string      `json:"class_names,omitempty"` // none: classes are numbers
	Targets         []Target      `json:"targets,omitempty"`     // of regression, instead of classes
	LabelsPerVertex report.Number `json:"labels_per_vertex"`     // mean over those that have any
	Unlabelled      int64         `json:"unlabelled"`
	Homophily       report.Number `json:"homophily"` // share of edges between vertices of one class, or that share one
	Train           int           `json:"train"`
	Val             int           `json:"val"`
	Test            int           `json:"test"`
	Bytes           int64         `json:"bytes"`
	Source          string        `json:"source,omitempty"`
	Notes           []string      `json:"notes,omitempty"`

	FeatureRange *Range        `json:"feature_range,omitempty"`
	Standardized bool          `json:"standardized,omitempty"` // the dataset has the scale
	WeightRange  *Range        `json:"weight_range,omitempty"`
	Reciprocity  report.Number `json:"reciprocity"` // share of edges that have their reverse
	Warnings     []string      `json:"warnings,omitempty"`

	// Types and Relations are a typed graph's, whose features, labels and splits are by type.
	Types     []TypeInfo     `json:"types,omitempty"`
	Relations []RelationInfo `json:"relations,omitempty"`

	Estimate *Estimate `json:"estimate,omitempty"`
}

// Range is the least and the largest of some numbers.
type Range struct {
	Min report.Number `json:"min"`
	Max report.Number `json:"max"`
}

// Target is the distribution of one number of a regression's labels.
type Target struct {
	Mean      float64 `json:"mean"`
	Deviation float64 `json:"deviation"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

// Quantiles of a list of numbers.
type Quantiles struct {
	Min    int64   `json:"min"`
	Median int64   `json:"median"`
	P90    int64   `json:"p90"`
	P99    int64   `json:"p99"`
	Max    int64   `json:"max"`
	Mean   float64 `json:"mean"`
}
