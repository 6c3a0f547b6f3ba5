package cost

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Known are the rates of a cluster of machines of one kind, as its file has them.
type Known struct {
	Format string `json:"format"`
	// Machine names the processor, its cores and instruction set, and the version that measured.
	Machine string  `json:"machine"`
	Cores   int     `json:"cores"`
	Compute Compute `json:"compute"`
	// HostByte and HostMessage are the processor seconds that sending and receiving a byte and a message
	// take, both ends together.
	HostByte    float64 `json:"host_byte_seconds"`
	HostMessage float64 `json:"host_message_seconds"`
	// Draw is the processor seconds per edge of batches, as Work counts them: drawing, asking, gathering.
	Draw float64 `json:"draw_seconds,omitempty"`
	// PullInt8 and PullBF16 are the processor seconds per byte of features' rows that owners round to these types, and
	// batches make rows again.
	PullInt8 float64 `json:"pull_int8_seconds,omitempty"`
	PullBF16 float64 `json:"pull_bf16_seconds,omitempty"`
	// Inside and Between are links between workers of a server, and between servers; of each pair of
	// servers the slowest that was measured.
	Inside  Link `json:"inside"`
	Between Link `json:"between"`
	// Links are the links of each pair of servers, where workers of a cluster have measured them.
	Links []ServerLink `json:"links,omitempty"`
	// Slowness is by how much the steps of a model take longer than Compute says, by model and shape.
	Slowness map[string]float64 `json:"slowness,omitempty"`
	// Charged are the rates that simulations charge, by the shape that they were measured with.
	Charged map[string]Charging `json:"charged,omitempty"`
	// Learned is by how much epochs took longer than predicted, by strategy and mode.
	Learned map[string]float64 `json:"learned,omitempty"`
}

// Charging are the rates of a whole machine, as ParseCompute reads them, and when they were measured.
type Charging struct {
	Computing string `json:"computing"`
	Measured  string `json:"measured"` // RFC 3339
}

// Link is what joins two workers. A rate of 0 is not known.
type Link struct {
	Rate  float64 `json:"bytes_per_second"`
	Delay float64 `json:"delay_seconds"` // one way
}

// KnownFormat is the format of files of rates.
const KnownFormat = "starling-rates-2"

// mostKnown bounds a file of rates.
const mostKnown = 4096

// ParseKnown reads a file of rates, and refuses what cannot be.
func ParseKnown(text []byte) (*Known, error) {
	k := &Known{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("found no JSON of rates (%v), want what starling plan --measure writes", err)
	}
	switch {
	case k.Format == KnownFormat:
	case strings.HasPrefix(k.Format, "starling-rates-"):
		return nil, fmt.Errorf("%w: found format %q, want %s", ErrStale, k.Format, KnownFormat)
	default:
		return nil, fmt.Errorf("found format %q, want %s", k.Format, KnownFormat)
	}
	return k, k.validate()
}

// Text is the file.
func (k *Known) Text() []byte {
	text, _ := json.MarshalIndent(k, "", "  ")
	return append(text, '\n')
}

// validate names a rate that cannot be, or that contradicts another.
func (k *Known) validate() error {
	for _, f := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"compute.GEMM", k.Compute.GEMM, 1e6, 1e17}, {"compute.SpMM", k.Compute.SpMM, 1e5, 1e16},
		{"compute.Memory", k.Compute.Memory, 1e6, 1e16}, {"compute.Op", k.Compute.Op, 0, 1},
		{"compute.Message", k.Compute.Message, 0, 1},
		{"cores", float64(k.Cores), 1, 1 << 16},
		{"host_byte_seconds", k.HostByte, 0, 1e-4}, {"host_message_seconds", k.HostMessage, 0, 1},
		{"draw_seconds", k.Draw, 0, 1}, {"compute.Int8", k.Compute.Int8, 0, 1e16},
		{"compute.BF16", k.Compute.BF16, 0, 1e16}, {"pull_int8_seconds", k.PullInt8, 0, 1e-3},
		{"pull_bf16_seconds", k.PullBF16, 0, 1e-3},
		{"inside.bytes_per_second", k.Inside.Rate, 0, 1e15}, {"inside.delay_seconds", k.Inside.Delay, 0, 60},
		{"between.bytes_per_second", k.Between.Rate, 0, 1e15}, {"between.delay_seconds", k.Between.Delay, 0, 60},
	} {
		if !(f.value >= f.least && f.value <= f.most) {
			return fmt.Errorf("found %s %g, want %g to %g", f.name, f.value, f.least, f.most)
		}
	}
	if err := k.checkUnknown(); err != nil {
		return err
	}
	if n := len(k.Slowness) + len(k.Learned) + len(k.Charged); n > mostKnown {
		return fmt.Errorf("found %d entries, want at most %d", n, mostKnown)
	}
	for name, c := range k.Charged {
		if _, err := ParseCompute(c.Computing); err != nil {
			return fmt.Errorf("charged %s: %w", name, err)
		}
	}
	for _, list := range []map[string]float64{k.Slowness, k.Learned} {
		for name, x := range list {
			if !(x >= leastFactor && x <= mostFactor) {
				return fmt.Errorf("found %s %g, want %g to %g", name, x, leastFactor, mostFactor)
			}
		}
	}
	if err := k.checkLinks(); err != nil {
		return err
	}
	return k.contradiction()
}

// slowestRate is below any link and any packing, in bytes per second. Slower ones would make a plan's seconds infinite.
const slowestRate = 1

// checkUnknown checks rates that may be unknown, which is 0.
func (k *Known) checkUnknown() error {
	for _, f := range []struct {
		name  string
		value float64
	}{{"compute.Int8", k.Compute.Int8}, {"compute.BF16", k.Compute.BF16}, {"compute.Send", k.Compute.Send},
		{"compute.Recv", k.Compute.Recv}, {"inside.bytes_per_second", k.Inside.Rate},
		{"between.bytes_per_second", k.Between.Rate}} {
		if f.value != 0 && !(f.value >= slowestRate && f.value <= 1e16) {
			return fmt.Errorf("found %s %g, want %d to 1e+16, or 0 if it is not known", f.name, f.value, slowestRate)
		}
	}
	return nil
}

const leastFactor, mostFactor = 0.1, 10.0

// contradiction is two rates that cannot both be.
func (k *Known) contradiction() error {
	if r := k.Between.Rate; r > 0 && k.HostByte > 0 && r*k.HostByte > 4*float64(k.Cores) {
		return fmt.Errorf("found links of %.3g bytes per second and hosts of %d cores that take %.3g s per byte, so "+
			"that they could not fill a quarter of one; want rates of one cluster", r, k.Cores, k.HostByte)
	}
	if in, out := k.Inside.Rate, k.Between.Rate; in > 0 && out > 100*in {
		return fmt.Errorf("found links between servers of %.3g bytes per second and %.3g inside one, want these not "+
			"slower", out, in)
	}
	return nil
}

// ErrStale: rates are of another machine or version.
var ErrStale = errors.New("stale rates")

// Check refuses rates of another machine.
func (k *Known) Check(machine string) error {
	if k.Machine != machine {
		return fmt.Errorf("%w: found rates of %q, want those of %q", ErrStale, k.Machine, machine)
	}
	return nil
}

// Learn takes in how many seconds epochs of a kind took and how many were predicted: half way,
// and within bounds, so that one odd run does not decide.
func (k *Known) Learn(kind string, predicted, measured float64) {
	if !(predicted > 0) || !(measured > 0) {
		return
	}
	before := k.Factor(kind)
	next := before * math.Sqrt(measured/predicted)
	if k.Learned == nil {
		k.Learned = map[string]float64{}
	}
	k.Learned[kind] = min(max(next, 0.5), 2)
}

// Factor is what was learnt of a kind; 1: nothing yet.
func (k *Known) Factor(kind string) float64 {
	if x, ok := k.Learned[kind]; ok {
		return x
	}
	return 1
}

// Handling is what processors of each end take for a byte and a message over a link, as predictions have it: what
// simulations are given, to be compared with them.
func (k *Known) Handling() Sending {
	return Sending{Byte: packets * k.HostByte / 2, Message: k.HostMessage / 2}
}

// BusiestLink is how long what servers send each takes on the busiest of their links, where it arrives evenly.
func (k *Known) BusiestLink(sent []float64) float64 { return per(busiest(sent)*frame, k.Between.Rate) }
