package run

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
	"starling/tensor/cuda"
	"starling/tensor/ref"
)

// newDevice is what a worker of the run computes with.
func newDevice(s *spec.Spec, rank int) (tensor.Device, error) {
	if s.Machine.Device == "cpu" || s.Machine.DType == "f64" {
		return onHost(s), nil
	}
	d, err := openCard(s, rank)
	// a worker of another host chooses for itself
	if s.Machine.Device == "auto" && errors.Is(err, cuda.ErrUnavailable) {
		return newCPU(s), nil
	}
	return d, err
}

func newCPU(s *spec.Spec) tensor.Device {
	o := cpu.Options{Threads: s.Machine.Threads, Level: simd.Best(), PlainMatMul: s.Machine.MatMul == "f32"}
	if level, err := simd.ParseLevel(s.Machine.SIMD); err == nil {
		// Validate refuses what this host lacks, but a worker may be on another.
		o.Level = min(level, simd.Supported())
	}
	return cpu.NewWith(o)
}

// hostDevice makes devices of one thread for what runs beside training, on the host.
func hostDevice(s spec.Spec) func() tensor.Device {
	s.Machine.Threads = 1
	return func() tensor.Device { return onHost(&s) }
}

// onHost is a device of the host, whatever --device says.
func onHost(s *spec.Spec) tensor.Device {
	if s.Machine.DType == "f64" {
		return ref.New()
	}
	return newCPU(s)
}

// openCard is a device on the card that --device names, or on one of this worker's own.
func openCard(s *spec.Spec, rank int) (tensor.Device, error) {
	number := s.Machine.GPU()
	if number < 0 {
		cards, err := cuda.Cards()
		if err != nil {
			return nil, err
		}
		number = localRank(rank) % len(cards)
	}
	d, err := cuda.Open(cuda.Options{Number: number, TF32: s.Machine.MatMul == "tf32",
		Exact: s.Machine.MatMul == "f32"})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// localRank is the worker's number among those of its host, as launchers tell it; else its rank.
func localRank(rank int) int {
	for _, v := range []string{"SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK"} {
		if n, err := strconv.Atoi(os.Getenv(v)); err == nil && n >= 0 {
			return n
		}
	}
	return rank
}

// planFunc is the plan of the same run with other settings.
type planFunc func(s *spec.Spec) (*Plan, error)

// chooseDevice settles --device auto, and checks that a card is there and has the memory. again plans variants that
// may fit; nil: none are looked for.
func chooseDevice(s *spec.Spec, p *Plan, again planFunc, events event.Listener) error {
	if s.Machine.Device == "cpu" || s.Machine.DType == "f64" {
		if s.Machine.Device == "auto" {
			s.Machine.Device = "cpu"
		}
		return nil
	}
	err := fitsCard(s, p)
	if tooSmall := (*graph.InputError)(nil); errors.As(err, &tooSmall) && s.Mode == "mini" &&
		s.Machine.FeaturesOn == "auto" {
		host := *s
		host.Machine.FeaturesOn = "host"
		if p.Features > 0 && fitsCard(&host, p) == nil { // the same count, without features
			err, s.Machine.FeaturesOn = nil, "host"
			events.On(event.Note{Text: fmt.Sprintf("features do not fit the card: their %s stay in the host's memory "+
				"(--features-on host)", event.Bytes(p.Features))})
		}
	}
	if tooSmall := (*graph.InputError)(nil); errors.As(err, &tooSmall) && s.Machine.Device != "auto" {
		fits := func(other *spec.Spec, q *Plan) bool { return fitsCard(other, q) == nil }
		if fix := fittingCard(s, again, fits); fix != "" {
			tooSmall.Fix = fix
		}
	}
	switch {
	case err == nil && s.Machine.Device == "auto":
		s.Machine.Device = "cuda"
		events.On(event.Note{Text: "computing on a card (--device cuda)", Minor: true})
	case err != nil && s.Machine.Device == "auto":
		s.Machine.Device = "cpu"
		events.On(event.Note{Text: "computing on the CPU (--device cpu): " + err.Error()})
		return nil
	case errors.Is(err, cuda.ErrUnavailable):
		return spec.Mistake("--device", s.Machine.Device, "a device that this host has", err.Error())
	}
	return err
}

// fitsCard refuses a run whose matrices do not fit the memory of its card.
func fitsCard(s *spec.Spec, p *Plan) error {
	cards, err := cuda.Cards()
	if err != nil {
		return err
	}
	number := max(0, s.Machine.GPU())
	if number >= len(cards) {
		return spec.Mistake("--device", s.Machine.Device, fmt.Sprintf("cuda:0 to cuda:%d", len(cards)-1),
			"see starling devices")
	}
	card, need := cards[number], p.onCard(s)
	if !s.Machine.MemoryCheck || need <= card.Free {
		return nil
	}
	return &graph.InputError{Field: "memory of " + card.Name, Found: "a run that needs about " + event.Bytes(need),
		Want: fmt.Sprintf("at most the %s that are free there", event.Bytes(card.Free)),
		Fix: "try --dtype bf16, --cache-first off, a smaller --hidden or --mode mini (then --features-on host may help); " +
			"--memory-check=false tries anyway"}
}

// fittingCard says which variants of a run fit its card, by the same count; "" where none was found.
func fittingCard(s *spec.Spec, again planFunc, fits func(*spec.Spec, *Plan) bool) string {
	if again == nil {
		return ""
	}
	var fitting []string
	for _, other := range smallerOnCard(s) {
		if len(fitting) == 3 {
			break
		}
		if q, err := again(&other.spec); err == nil && !q.AtLeast && fits(&other.spec, q) {
			fitting = append(fitting, fmt.Sprintf("%s (%s)", other.flags, event.Bytes(q.onCard(&other.spec))))
		}
	}
	if fitting == nil {
		return ""
	}
	return "these would fit: " + strings.Join(fitting, ", ") + "; --memory-check=false tries anyway"
}

// smallerOnCard lists ways to need less of a card: those of any device, and mini-batches, with features on the host
// where a whole layer's do not fit.
func smallerOnCard(s *spec.Spec) []variant {
	list := smallerSpecs(s)
	switch {
	case s.Mode == "full" && s.Cluster.Workers <= 1 && !s.LearnsPairs():
		batches := *s
		batches.Mode, batches.Machine.FeaturesOn = "mini", "host"
		return append(list, variant{"--mode mini --features-on host", batches})
	case s.Mode == "mini" && s.Machine.FeaturesOn != "host":
		host := *s
		host.Machine.FeaturesOn = "host"
		return append([]variant{{"--features-on host", host}}, list...)
	}
	return list
}

// onCard is what a run takes there: its matrices, and copies of features and edges, which are there in both
// directions, unless features stay on the host.
func (p *Plan) onCard(s *spec.Spec) int64 {
	if s.Machine.FeaturesOn == "host" {
		return p.Matrices + 2*(p.Mapped-p.Features)
	}
	return p.Matrices + 2*p.Mapped
}

// deviceFailure turns a failure of a card, of which operations can only panic, into the error of a run.
func deviceFailure(err *error) {
	switch r := recover().(type) {
	case nil:
	case *cuda.Error:
		*err = errors.Join(*err, r)
	default:
		panic(r)
	}
}

// deviceName is the device of a run, in a report.
func deviceName(s *spec.Spec) string {
	if !s.Machine.OnGPU() {
		return "cpu"
	}
	cards, err := cuda.Cards()
	if n := max(0, s.Machine.GPU()); err == nil && n < len(cards) {
		return s.Machine.Device + " " + cards[n].Name
	}
	return s.Machine.Device
}
