package spec

import (
	"strconv"
	"strings"

	"starling/graph"
)

// DeviceNames are the values of --device; cuda may be followed by the number of a card.
var DeviceNames = []string{"cpu", "cuda", "auto"}

// deviceKind is a device without the number of its card. What is no number stays, and is refused.
func deviceKind(name string) string {
	kind, number, _ := strings.Cut(name, ":")
	if _, err := strconv.ParseUint(number, 10, 16); kind == "cuda" && err == nil {
		return kind
	}
	return name
}

// Card is the number of the card that --device names; -1: none, each worker has its own.
func (s *Spec) Card() int {
	if n, err := strconv.Atoi(strings.TrimPrefix(s.Device, "cuda:")); err == nil {
		return n
	}
	return -1
}

// OnCard reports whether --device is a card.
func (s *Spec) OnCard() bool { return deviceKind(s.Device) == "cuda" }

// checkDevice refuses what the device cannot do.
func (s *Spec) checkDevice() error {
	switch {
	case s.OnCard() && s.DType == "f64":
		return graph.Apart("--device "+s.Device, "--dtype f64", "kernels of a card are of f32 and bf16",
			"use --dtype f32 or bf16, or --device cpu, whose reference device has f64")
	case s.Device == "cpu" && s.MatMul == "tf32":
		return graph.Apart("--matmul tf32", "--device cpu", "only cards have tf32",
			"use --device cuda, or --matmul split")
	}
	return nil
}
