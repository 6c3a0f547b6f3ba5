package nn

import (
	"fmt"
	"slices"

	"starling/tensor"
)

// Tensor is a named array of a state dict, on the host.
type Tensor struct {
	Name  string
	Shape []int
	F64   bool // kept in double precision; else Data holds single-precision values
	Data  []float64
	// Read, where set, takes the place of Data: it gives whole rows, from one on, from
	// in place.
	Read func(into []float64, row int)
}

// count is how many numbers it has, width how many a row.
func (t *Tensor) count() int64 {
	if t.Read == nil {
		return int64(len(t.Data))
	}
	n, _ := elements(t.Shape)
	return n
}

func (t *Tensor) width() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return t.Shape[len(t.Shape)-1]
}

// pieceNumbers is about how many are read at once of an array that lies elsewhere.
const pieceNumbers = 1 << 13

// Pieces calls f for some rows after the other, with the number of the first. The numbers
// are good until f returns.
func (t *Tensor) Pieces(f func(numbers []float64, row int)) {
	n, width := int(t.count()), max(t.width(), 1)
	rows := max(pieceNumbers/width, 1)
	var buffer []float64
	for at := 0; at < n; at += rows * width {
		end := min(at+rows*width, n)
		if t.Read == nil {
			f(t.Data[at:end], at/width)
			continue
		}
		if buffer == nil {
			buffer = make([]float64, end-at)
		}
		t.Read(buffer[:end-at], at/width)
		f(buffer[:end-at], at/width)
	}
}

// Numbers are all of them.
func (t *Tensor) Numbers() []float64 {
	if t.Read == nil {
		return t.Data
	}
	all := make([]float64, t.count())
	if len(all) > 0 {
		t.Read(all, 0)
	}
	return all
}

// State returns the weights and running statistics under the names and in the
// layouts of PyG's state dicts.
func (m *Model) State(dev tensor.Device) []Tensor {
	var out []Tensor
	if _, ok := dev.(dryRun); ok {
		return nil
	}
	for _, p := range m.Params {
		out = append(out, p.tensor(dev, p.Name, p.Value))
	}
	for _, b := range m.Buffers {
		t := Tensor{Name: b.Name, Shape: []int{b.Value.Cols}, F64: true, Data: make([]float64, b.Value.Cols)}
		dev.Download(t.Data, b.Value)
		out = append(out, t)
	}
	return out
}

// Load sets weights and running statistics from a state dict that has exactly
// the model's names and shapes.
func (m *Model) Load(dev tensor.Device, state []Tensor) error {
	named := map[string]Tensor{}
	for _, t := range state {
		named[t.Name] = t
	}
	if n := len(m.Params) + len(m.Buffers); len(named) != n || len(state) != n {
		return fmt.Errorf("it has %d arrays, the model %d", len(state), n)
	}
	for _, p := range m.Params {
		if err := p.load(dev, p.Value, named, p.Name); err != nil {
			return err
		}
	}
	for _, b := range m.Buffers {
		t, ok := named[b.Name]
		if !ok || !slices.Equal(t.Shape, []int{b.Value.Cols}) {
			return fmt.Errorf("array %q of shape [%d] is missing or has shape %v", b.Name, b.Value.Cols, t.Shape)
		}
		dev.Upload(b.Value, t.Data)
	}
	return nil
}

// State returns what the optimiser keeps of each parameter, as PARAM.KIND.
func (o *Optimiser) State() []Tensor {
	var out []Tensor
	for _, p := range o.params {
		for i, kind := range o.stateNames() {
			out = append(out, p.tensor(o.dev, p.Name+"."+kind, p.state[i]))
		}
	}
	return out
}

// Load sets the optimiser's state and the number of steps taken.
func (o *Optimiser) Load(state []Tensor, steps int) error {
	named := map[string]Tensor{}
	for _, t := range state {
		named[t.Name] = t
	}
	for _, p := range o.params {
		for i, kind := range o.stateNames() {
			if err := p.load(o.dev, p.state[i], named, p.Name+"."+kind); err != nil {
				return err
			}
		}
	}
	o.Steps = steps
	return nil
}

// tensor reads a matrix of p's shape from the device, in the saved layout.
func (p *Param) tensor(dev tensor.Device, name string, m tensor.Matrix) Tensor {
	t := Tensor{Name: name, Shape: p.Shape, F64: m.Type() == tensor.F64, Data: make([]float64, m.Rows*m.Cols)}
	dev.Download(t.Data, m)
	if p.Transposed {
		t.Data = Transpose(t.Data, m.Rows, m.Cols)
	}
	return t
}

// Tensors are the values of parameters that are no model's.
func Tensors(dev tensor.Device, params []*Param) (out []Tensor) {
	if _, ok := dev.(dryRun); ok {
		return nil
	}
	for _, p := range params {
		out = append(out, p.tensor(dev, p.Name, p.Value))
	}
	return out
}

// LoadTensors sets parameters from what Tensors returned.
func LoadTensors(dev tensor.Device, params []*Param, state []Tensor) error {
	named := map[string]Tensor{}
	for _, t := range state {
		named[t.Name] = t
	}
	for _, p := range params {
		if err := p.load(dev, p.Value, named, p.Name); err != nil {
			return err
		}
	}
	return nil
}

func (p *Param) load(dev tensor.Device, m tensor.Matrix, from map[string]Tensor, name string) error {
	t, ok := from[name]
	if !ok || !slices.Equal(t.Shape, p.Shape) {
		return fmt.Errorf("array %q of shape %v is missing or has shape %v", name, p.Shape, t.Shape)
	}
	data := t.Data
	if p.Transposed {
		data = Transpose(data, m.Cols, m.Rows)
	}
	dev.Upload(m, data)
	return nil
}

// Transpose is the transpose of a row-major rows x cols array.
func Transpose(v []float64, rows, cols int) []float64 {
	out := make([]float64, len(v))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = v[i*cols+j]
		}
	}
	return out
}
