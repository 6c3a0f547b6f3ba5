package graph

// Written maps the edges that were written so far, for what is derived from them. The caller
// calls close, and uses nothing of the graph afterwards.
func (w *Writer) Written() (g *CSR, close func() error, err error) {
	d := &Dataset{Dir: w.tmp, Meta: w.Meta, maps: map[string][]byte{}}
	if err := d.loadGraph(); err != nil {
		d.Close()
		return nil, nil, err
	}
	return d.Graph, d.Close, nil
}
