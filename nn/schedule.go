package nn

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Schedule changes the learning rate over epochs. Its text form is
//
//	none            constant
//	step:N,G        times G every N epochs
//	cosine:T[,MIN]  from the base rate down to MIN (0) over T epochs, half a cosine wave
//
// as PyTorch's StepLR and CosineAnnealingLR. The zero Schedule is none.
type Schedule struct {
	kind  string
	every int
	value float64
}

// ParseSchedule reads the text form.
func ParseSchedule(s string) (Schedule, error) {
	kind, rest, _ := strings.Cut(s, ":")
	first, second, two := strings.Cut(rest, ",")
	every, err := strconv.Atoi(first)
	bad := fmt.Errorf("schedule %q is not none, step:EPOCHS,FACTOR or cosine:EPOCHS[,MIN]", s)
	switch {
	case s == "none" || s == "":
		return Schedule{}, nil
	case kind != "step" && kind != "cosine", err != nil, every < 1, kind == "step" && !two:
		return Schedule{}, bad
	}
	out := Schedule{kind: kind, every: every}
	if two {
		if out.value, err = strconv.ParseFloat(second, 64); err != nil || !(out.value >= 0 && out.value < 1e6) {
			return Schedule{}, bad
		}
	}
	return out, nil
}

func (s Schedule) String() string {
	if s.kind == "" {
		return "none"
	}
	return fmt.Sprintf("%s:%d,%g", s.kind, s.every, s.value)
}

// MarshalText and UnmarshalText carry the text form in JSON and YAML.
func (s Schedule) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Schedule) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSchedule(string(b))
	return err
}

// Rate is the learning rate in an epoch, counted from 0.
func (s Schedule) Rate(base float64, epoch int) float64 {
	switch s.kind {
	case "step":
		return base * math.Pow(s.value, float64(epoch/s.every))
	case "cosine":
		return s.value + (base-s.value)*(1+math.Cos(math.Pi*float64(epoch)/float64(s.every)))/2
	}
	return base
}
