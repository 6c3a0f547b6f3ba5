package paths

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const maxCapacity = 1 << 16

// Parse reads a file and checks it. Its error is an *Error, which names line and field.
func Parse(text []byte) (*File, error) {
	root, err := open(text)
	if err != nil {
		return nil, err
	}
	parts, err := root.need([]string{"hardware", "paths", "requests"}, []string{"policy", "record"})
	if err != nil {
		return nil, err
	}
	f := &File{}
	for _, step := range []struct {
		field string
		read  func(value) error
	}{{"hardware", f.readHardware}, {"paths", f.readPaths}, {"requests", f.readRequests}} {
		if err := step.read(parts[step.field]); err != nil {
			return nil, err
		}
	}
	if v, ok := parts["policy"]; ok {
		i, err := v.oneOf(PolicyNames())
		if err != nil {
			return nil, err
		}
		f.Policy = PolicyNames()[i]
	}
	if v, ok := parts["record"]; ok {
		if f.Record, err = v.text(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// need are the fields of a mapping, of which some must be there.
func (v value) need(needed, others []string) (map[string]value, error) {
	fields, err := v.fields(append(append([]string{}, needed...), others...)...)
	if err != nil {
		return nil, err
	}
	for _, name := range needed {
		if _, ok := fields[name]; !ok {
			return nil, v.wrong("no field "+name, "fields: "+strings.Join(needed, ", "), "")
		}
	}
	return fields, nil
}

func (f *File) readHardware(v value) error {
	parts, err := v.need([]string{"model", "nodes", "links", "network"}, nil)
	if err != nil {
		return err
	}
	model, err := parts["model"].oneOf(Models())
	if err != nil {
		return err
	}
	h := &f.Hardware
	h.Model = Model(Models()[model])
	if err := parts["nodes"].each(1, h.readNode); err != nil {
		return err
	}
	if err := parts["links"].each(0, h.readLink); err != nil {
		return err
	}
	if found := h.shapeError(); found != "" {
		return parts["links"].wrong(found, "the links of model "+string(h.Model)+": "+
			strings.Join(shapes[h.Model], ", "), "model custom takes any")
	}
	return parts["network"].each(1, h.readNetwork)
}

// each reads the entries of a list that must have a minimum length.
func (v value) each(atLeast int, read func(value) error) error {
	entries, err := v.list()
	if err != nil {
		return err
	}
	if len(entries) < atLeast {
		return v.wrong("an empty list", "at least one entry", "")
	}
	for _, e := range entries {
		if err := read(e); err != nil {
			return err
		}
	}
	return nil
}

// oneOf is the place of a text in a list.
func (v value) oneOf(known []string) (int, error) {
	s, err := v.text()
	if err != nil {
		return 0, err
	}
	if i := slices.Index(known, s); i >= 0 {
		return i, nil
	}
	return 0, v.wrong(strconv.Quote(s), "one of "+strings.Join(known, ", "), "")
}

func (h *Hardware) readNode(v value) error {
	parts, err := v.need([]string{"name"}, []string{"capacity", "delay"})
	if err != nil {
		return err
	}
	n := Node{Capacity: 1}
	if n.Name, err = parts["name"].name(); err != nil {
		return err
	}
	if h.node(n.Name) != nil {
		return parts["name"].wrong("a second node "+n.Name, "a name for each", "")
	}
	if x, ok := parts["capacity"]; ok {
		if n.Capacity, err = x.whole(1, maxCapacity); err != nil {
			return err
		}
	}
	if x, ok := parts["delay"]; ok {
		if n.Delay, err = x.scaled(timeUnits, wantTime); err != nil {
			return err
		}
	}
	h.Nodes = append(h.Nodes, n)
	return nil
}

// name is a text that can be part of a stop.
func (v value) name() (string, error) {
	s, err := v.text()
	if err != nil {
		return "", err
	}
	if s == "" || strings.ContainsAny(s, ". \t,") {
		return "", v.wrong(strconv.Quote(s), "a name without spaces, dots and commas", "")
	}
	return s, nil
}

// whole is a whole number.
func (v value) whole(least, most int) (int, error) {
	s, err := v.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, v.wrong(strconv.Quote(s), fmt.Sprintf("a whole number from %d to %d", least, most), "")
	}
	return n, nil
}

func (h *Hardware) readLink(v value) error {
	parts, err := v.need([]string{"between", "bandwidth"}, []string{"latency"})
	if err != nil {
		return err
	}
	ends, err := parts["between"].list()
	if err != nil {
		return err
	}
	if len(ends) != 2 {
		return parts["between"].wrong(fmt.Sprintf("%d nodes", len(ends)), "two", "")
	}
	var l Link
	for i, to := range []*string{&l.A, &l.B} {
		if *to, err = h.known(ends[i]); err != nil {
			return err
		}
	}
	if l.A == l.B {
		return parts["between"].wrong(l.A+" twice", "two nodes", "")
	}
	for _, x := range h.Links {
		if x.A == l.A && x.B == l.B || x.A == l.B && x.B == l.A {
			return parts["between"].wrong("a second link "+l.A+"-"+l.B, "one with their bandwidth in sum",
				"or put a node of its own into each")
		}
	}
	if l.Bandwidth, err = parts["bandwidth"].rate(); err != nil {
		return err
	}
	if x, ok := parts["latency"]; ok {
		if l.Latency, err = x.scaled(timeUnits, wantTime); err != nil {
			return err
		}
	}
	h.Links = append(h.Links, l)
	return nil
}

// known is the name of a node.
func (h *Hardware) known(v value) (string, error) {
	s, err := v.text()
	if err != nil {
		return "", err
	}
	if h.node(s) != nil {
		return s, nil
	}
	names := make([]string, len(h.Nodes))
	for i := range h.Nodes {
		names[i] = h.Nodes[i].Name
	}
	return "", v.wrong(strconv.Quote(s), "a node: "+strings.Join(names, ", "), "")
}

// rate is a bandwidth above 0.
func (v value) rate() (float64, error) {
	x, err := v.scaled(rateUnits, wantRate)
	if err == nil && x == 0 {
		err = v.wrong("0", wantRate, "")
	}
	return x, err
}

func (h *Hardware) readNetwork(v value) error {
	parts, err := v.need([]string{"node"}, []string{"bandwidth", "latency", "jitter"})
	if err != nil {
		return err
	}
	var n Network
	if n.Node, err = h.known(parts["node"]); err != nil {
		return err
	}
	if x, ok := parts["bandwidth"]; ok {
		if n.Bandwidth, err = x.rate(); err != nil {
			return err
		}
	}
	for name, to := range map[string]*float64{"latency": &n.Latency, "jitter": &n.Jitter} {
		if x, ok := parts[name]; ok {
			if *to, err = x.scaled(timeUnits, wantTime); err != nil {
				return err
			}
		}
	}
	h.Network = append(h.Network, n)
	return nil
}

func (f *File) readPaths(v value) error {
	return v.each(1, func(v value) error {
		parts, err := v.need([]string{"name", "stops"}, []string{"address"})
		if err != nil {
			return err
		}
		var p Path
		if p.Name, err = parts["name"].name(); err != nil {
			return err
		}
		if f.path(p.Name) >= 0 {
			return parts["name"].wrong("a second path "+p.Name, "a name for each", "")
		}
		if x, ok := parts["address"]; ok {
			if p.Address, err = x.text(); err != nil {
				return err
			}
		}
		if p.Stops, err = f.stops(parts["stops"]); err != nil {
			return err
		}
		f.Paths = append(f.Paths, p)
		return nil
	})
}

// path finds one by name; -1: there is none.
func (f *File) path(name string) int {
	return slices.IndexFunc(f.Paths, func(p Path) bool { return p.Name == name })
}

// stops checks that there is one way between each two.
func (f *File) stops(v value) (names []string, err error) {
	entries, err := v.list()
	if err != nil {
		return nil, err
	}
	if len(entries) < 2 {
		return nil, v.wrong(fmt.Sprintf("%d stops", len(entries)), "at least two", "")
	}
	for i, e := range entries {
		s, err := e.text()
		if err != nil {
			return nil, err
		}
		_, node, ok := splitStop(s)
		if !ok || f.Hardware.node(node) == nil {
			return nil, e.wrong(strconv.Quote(s), "requester.NODE or responder.NODE", "")
		}
		if i > 0 {
			if _, found := f.Hardware.route(names[i-1], s); found != "" {
				return nil, e.wrong(found, "exactly one shortest way", "add a link, or a stop on the way that is meant")
			}
		}
		names = append(names, s)
	}
	return names, nil
}

func (f *File) readRequests(v value) error {
	return v.each(1, func(v value) error {
		parts, err := v.need([]string{"type", "paths"}, []string{"dependency", "read_only", "share"})
		if err != nil {
			return err
		}
		r := RequestType{Share: 1}
		if r.Name, err = parts["type"].name(); err != nil {
			return err
		}
		for _, other := range f.Requests {
			if other.Name == r.Name {
				return parts["type"].wrong("a second type "+r.Name, "a name for each", "")
			}
		}
		if x, ok := parts["dependency"]; ok {
			d, err := x.oneOf(dependencyNames)
			if err != nil {
				return err
			}
			r.Dependency = Dependency(d)
		}
		if x, ok := parts["read_only"]; ok {
			yes, err := x.oneOf([]string{"false", "true"})
			if err != nil {
				return err
			}
			r.ReadOnly = yes == 1
		}
		if x, ok := parts["share"]; ok {
			if r.Share, err = x.share(); err != nil {
				return err
			}
		}
		err = parts["paths"].each(1, func(v value) error { return f.readOption(v, &r) })
		f.Requests = append(f.Requests, r)
		return err
	})
}

func (v value) share() (float64, error) {
	s, err := v.text()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, v.wrong(strconv.Quote(s), "a share from 0 to 1", "")
	}
	return x, nil
}

func (f *File) readOption(v value, r *RequestType) error {
	parts, err := v.need([]string{"path", "sizes"}, []string{"compute"})
	if err != nil {
		return err
	}
	names := make([]string, len(f.Paths))
	for i := range f.Paths {
		names[i] = f.Paths[i].Name
	}
	o := Option{}
	if o.Path, err = parts["path"].oneOf(names); err != nil {
		return err
	}
	for _, other := range r.Options {
		if other.Path == o.Path {
			return parts["path"].wrong(names[o.Path]+" twice", "a path once", "")
		}
	}
	stops := len(f.Paths[o.Path].Stops)
	if o.Sizes, err = parts["sizes"].scaledList(stops-1, sizeUnits, wantSize); err != nil {
		return err
	}
	o.Compute = make([]float64, stops)
	if x, ok := parts["compute"]; ok {
		if o.Compute, err = x.scaledList(stops, timeUnits, wantTime); err != nil {
			return err
		}
	}
	r.Options = append(r.Options, o)
	return nil
}
