package netsim

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Topology is a network in words: which hosts, switches and links there are, and how they
// behave. Its text form is the kind and then name=value, separated by spaces or lines:
//
//	star       hosts=8
//	leaf-spine leaves=8 spines=8 hosts=16 uplink=100Gbps    hosts: per leaf
//	fat-tree   k=8                                          k*k*k/4 hosts
//	rail       servers=16 gpus=8 spines=4 inside=3600Gbps   a leaf per GPU number, see below
//
// All kinds take rate and delay (of links), buffer, shared, ecn, queues, routing, payload,
// header, window and control. From # to the end of a line is a comment.
//
// A rail-optimised network has a switch inside each server, which joins its GPUs, and one
// leaf switch (rail) per GPU number, which joins the GPUs of that number of all servers.
// Rails are joined by the spines. Each GPU is a host.
type Topology struct {
	Kind    string `json:"kind"`
	Hosts   int    `json:"hosts,omitempty"`
	Leaves  int    `json:"leaves,omitempty"`
	Spines  int    `json:"spines,omitempty"`
	K       int    `json:"k,omitempty"`
	Servers int    `json:"servers,omitempty"`
	GPUs    int    `json:"gpus,omitempty"`

	Rate   Rate `json:"rate_bps"`             // of links to hosts
	Uplink Rate `json:"uplink_bps,omitempty"` // of links between switches; 0: Rate
	Inside Rate `json:"inside_bps,omitempty"` // of links inside a server
	Delay  Time `json:"delay_ps"`             // of every link, one way

	Buffer int64 `json:"buffer_bytes"` // per port, or per switch where shared; 0: unlimited
	Shared bool  `json:"shared"`       // the ports of a switch share one buffer
	ECN    int64 `json:"ecn_bytes"`    // packets are marked from this length of their priority's queue on; 0: never
	Queues int   `json:"queues"`       // strict priorities per port, 1 to 64

	Routing string `json:"routing"`       // ecmp or spray
	Payload int64  `json:"payload_bytes"` // per packet
	Header  int64  `json:"header_bytes"`  // per packet, with preamble and gap
	Window  int64  `json:"window_bytes"`  // the most that a connection has in flight
	Control string `json:"control"`       // dctcp or none
}

// Kinds are the topologies that there are.
var Kinds = []string{"star", "leaf-spine", "fat-tree", "rail"}

// DefaultTopology is a star of 8 hosts at 25 Gbps. The header has the size of TCP's over Ethernet.
func DefaultTopology() Topology {
	return Topology{Kind: "star", Hosts: 8, Rate: 25 * Gbps, Delay: Microsecond, Queues: 8, Routing: "ecmp",
		Payload: 1460, Header: 78, Window: 1 << 20, Control: "dctcp"}
}

// ParseTopology reads the text form. What it does not name has the default of its kind.
func ParseTopology(text string) (Topology, error) {
	t := DefaultTopology()
	words := topologyWords(text)
	if len(words) == 0 || !slices.Contains(Kinds, words[0]) {
		return t, fmt.Errorf("topology %q: found no kind, want one of %s first, such as %q", text,
			strings.Join(Kinds, ", "), "star hosts=8")
	}
	t.setKind(words[0])
	seen := map[string]bool{}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok || value == "" {
			return t, fmt.Errorf("topology %s: found %q, want name=value without spaces, such as rate=25Gbps", t.Kind,
				w)
		}
		if seen[name] {
			return t, fmt.Errorf("topology %s: found %s twice, want it once", t.Kind, name)
		}
		seen[name] = true
		if err := t.set(name, value); err != nil {
			return t, fmt.Errorf("topology %s: %s: %w", t.Kind, name, err)
		}
	}
	return t, t.Validate()
}

// ReadTopology is ParseTopology of a file, or of the text itself where it has a kind's name first.
func ReadTopology(textOrFile string) (Topology, error) {
	if words := topologyWords(textOrFile); len(words) > 0 && slices.Contains(Kinds, words[0]) {
		return ParseTopology(textOrFile)
	}
	text, err := os.ReadFile(textOrFile)
	if err != nil {
		return Topology{}, fmt.Errorf("topology: found %q, want %s and settings, or a file with them: %w", textOrFile,
			strings.Join(Kinds, ", "), err)
	}
	t, err := ParseTopology(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", textOrFile, err)
	}
	return t, err
}

// topologyWords are the words of a text form without its comments.
func topologyWords(text string) (words []string) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words = append(words, strings.Fields(line)...)
	}
	return words
}

// setKind sets the defaults of a kind.
func (t *Topology) setKind(kind string) {
	t.Kind = kind
	if kind != "star" {
		t.Hosts = 0
	}
	switch kind {
	case "leaf-spine":
		t.Leaves, t.Spines, t.Hosts = 4, 4, 4
	case "fat-tree":
		t.K = 4
	case "rail":
		t.Servers, t.GPUs, t.Spines, t.Inside = 4, 8, 4, 3600*Gbps
	}
}

// setting is one name of the text form.
type setting struct {
	name  string
	kinds string // the topologies that have it; "": all
	value any    // a pointer to it
	bytes bool   // it is an amount of bytes
}

// settings returns the settings of the text form, in the order in which String writes them.
func (t *Topology) settings() []setting {
	return []setting{
		{"hosts", "star leaf-spine", &t.Hosts, false}, {"leaves", "leaf-spine", &t.Leaves, false},
		{"k", "fat-tree", &t.K, false}, {"servers", "rail", &t.Servers, false}, {"gpus", "rail", &t.GPUs, false},
		{"spines", "leaf-spine rail", &t.Spines, false}, {"rate", "", &t.Rate, false},
		{"uplink", "leaf-spine fat-tree rail", &t.Uplink, false}, {"inside", "rail", &t.Inside, false},
		{"delay", "", &t.Delay, false}, {"buffer", "", &t.Buffer, true}, {"shared", "", &t.Shared, false},
		{"ecn", "", &t.ECN, true}, {"queues", "", &t.Queues, false}, {"routing", "", &t.Routing, false},
		{"payload", "", &t.Payload, true}, {"header", "", &t.Header, true}, {"window", "", &t.Window, true},
		{"control", "", &t.Control, false},
	}
}

func (s *setting) of(kind string) bool {
	return s.kinds == "" || slices.Contains(strings.Fields(s.kinds), kind)
}

// set reads one value.
func (t *Topology) set(name, value string) error {
	var names []string
	for _, s := range t.settings() {
		if !s.of(t.Kind) {
			continue
		}
		if s.name == name {
			return s.parse(value)
		}
		names = append(names, s.name)
	}
	return fmt.Errorf("found an unknown name, want one of %s", strings.Join(names, ", "))
}

func (s *setting) parse(text string) (err error) {
	switch v := s.value.(type) {
	case *int:
		if *v, err = strconv.Atoi(text); err != nil {
			err = fmt.Errorf("found %q, want a whole number", text)
		}
	case *bool:
		if *v, err = strconv.ParseBool(text); err != nil {
			err = fmt.Errorf("found %q, want true or false", text)
		}
	case *string:
		*v = text
	case *Rate:
		*v, err = ParseRate(text)
	case *Time:
		*v, err = ParseTime(text)
	case *int64:
		*v, err = ParseBytes(text)
	}
	return err
}

// text is the value as parse reads it.
func (s *setting) text() string {
	switch v := s.value.(type) {
	case *int:
		return strconv.Itoa(*v)
	case *bool:
		return strconv.FormatBool(*v)
	case *string:
		return *v
	case *Rate:
		return v.String()
	case *Time:
		return v.String()
	}
	return scaled(*s.value.(*int64), byteUnits)
}

// String is the text form, with every setting that is not left out as zero.
func (t Topology) String() string {
	words := []string{t.Kind}
	for _, s := range t.settings() {
		if text := s.text(); s.of(t.Kind) && !(s.name == "uplink" && t.Uplink == 0) {
			words = append(words, s.name+"="+text)
		}
	}
	return strings.Join(words, " ")
}

// bound is what a setting must lie between.
type bound struct {
	name          string
	value, lo, hi int64
	when          bool
}

// Validate reports what of a topology cannot be built.
func (t *Topology) Validate() error {
	is := func(kinds ...string) bool { return slices.Contains(kinds, t.Kind) }
	if !is(Kinds...) {
		return fmt.Errorf("topology: found kind %q, want one of %s", t.Kind, strings.Join(Kinds, ", "))
	}
	const many = 1 << 16
	for _, b := range []bound{
		{"hosts", int64(t.Hosts), 1, many, is("star", "leaf-spine")},
		{"leaves", int64(t.Leaves), 1, many, is("leaf-spine")},
		{"spines", int64(t.Spines), 1, many, is("leaf-spine", "rail")}, {"k", int64(t.K), 2, 64, is("fat-tree")},
		{"servers", int64(t.Servers), 1, many, is("rail")}, {"gpus", int64(t.GPUs), 1, 64, is("rail")},
		{"rate", int64(t.Rate), 1, int64(100000 * Gbps), true},
		{"uplink", int64(t.Uplink), 0, int64(100000 * Gbps), true},
		{"inside", int64(t.Inside), 1, int64(100000 * Gbps), is("rail")},
		{"delay", int64(t.Delay), 0, int64(10 * Second), true},
		{"buffer", t.Buffer, 0, 1 << 40, true}, {"ecn", t.ECN, 0, 1 << 40, true},
		{"queues", int64(t.Queues), 1, 64, true},
		{"payload", t.Payload, 64, 1 << 16, true}, {"header", t.Header, 0, 1 << 12, true},
		{"window", t.Window, 1, 1 << 40, true}, {"hosts in all", int64(t.HostCount()), 1, many, true},
	} {
		if b.when && (b.value < b.lo || b.value > b.hi) {
			return fmt.Errorf("topology %s: found %s=%d, want %d to %d", t.Kind, b.name, b.value, b.lo, b.hi)
		}
	}
	return t.validateWords()
}

func (t *Topology) validateWords() error {
	switch {
	case t.Routing != "ecmp" && t.Routing != "spray":
		return fmt.Errorf("topology %s: found routing=%s, want ecmp (a path per connection) or spray (a path per "+
			"packet)", t.Kind, t.Routing)
	case t.Control != "dctcp" && t.Control != "none":
		return fmt.Errorf("topology %s: found control=%s, want dctcp (windows, acknowledgements, retransmission) or "+
			"none (datagrams)", t.Kind, t.Control)
	case t.Kind == "fat-tree" && t.K%2 != 0:
		return fmt.Errorf("topology fat-tree: found k=%d, want an even number", t.K)
	case t.Buffer > 0 && t.Buffer < t.Payload+t.Header:
		return fmt.Errorf("topology %s: found buffer=%dB, want space for one packet of %dB at least", t.Kind, t.Buffer,
			t.Payload+t.Header)
	}
	return nil
}

// HostCount is how many hosts the network has.
func (t *Topology) HostCount() int {
	switch t.Kind {
	case "leaf-spine":
		return t.Leaves * t.Hosts
	case "fat-tree":
		return t.K * t.K * t.K / 4
	case "rail":
		return t.Servers * t.GPUs
	}
	return t.Hosts
}

// uplink is the rate between switches.
func (t *Topology) uplink() Rate {
	if t.Uplink > 0 {
		return t.Uplink
	}
	return t.Rate
}
