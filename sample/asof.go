package sample

// AsOf is how a model that was trained on temporal batches is to be shown the past again: of each vertex as of its time.
type AsOf struct {
	Draws   string `json:"draws"` // uniform or recent
	Fanouts []int  `json:"fanouts"`
	Seed    uint64 `json:"seed"`
}
