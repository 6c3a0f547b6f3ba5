package inspect

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"starling/event"
	"starling/report"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/cuda"
)

// DeviceList is what a host can compute with.
type DeviceList struct {
	CPU struct {
		Cores  int    `json:"cores"`
		Memory int64  `json:"memory"`
		SIMD   string `json:"simd"`
	} `json:"cpu"`
	Cards   []cuda.Info `json:"cards"`
	NoCards string      `json:"no_cards,omitempty"` // why there are none
	NCCL    string      `json:"nccl,omitempty"`     // where it was found
}

// Devices lists what this host can compute with.
func Devices() *DeviceList {
	d := &DeviceList{}
	d.CPU.Cores, d.CPU.Memory, d.CPU.SIMD = runtime.NumCPU(), tensor.MemoryTotal(), simd.Best().String()
	var err error
	if d.Cards, err = cuda.GPUs(); err != nil {
		d.Cards, d.NoCards = []cuda.Info{}, err.Error()
	} else {
		d.NCCL = cuda.NCCL()
	}
	return d
}

func (d *DeviceList) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(d, path, stdout)
}

func (d *DeviceList) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cpu      %s (%s), %s of memory\n", event.Counted(d.CPU.Cores, "core"), d.CPU.SIMD,
		event.Bytes(d.CPU.Memory))
	for _, c := range d.Cards {
		products := "products of its own (cuBLAS was not found)"
		if c.CuBLAS != "" {
			products = "cuBLAS from " + c.CuBLAS
		}
		fmt.Fprintf(&b, "cuda:%-3d %s, %s of memory (%s free), compute capability %s, %s, %s\n", c.Number, c.Name,
			event.Bytes(c.Memory), event.Bytes(c.Free), c.Capability, c.DriverVersion, products)
	}
	if d.NCCL != "" {
		fmt.Fprintf(&b, "nccl     %s\n", d.NCCL)
	}
	if d.NoCards != "" {
		fmt.Fprintln(&b, d.NoCards)
	}
	return b.String()
}
