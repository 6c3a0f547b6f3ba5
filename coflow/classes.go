package coflow

import "slices"

// classes are the code points of StepDSCP, the most urgent first. Layers from the fourth on
// share one, and rows of the first layer have control's.
var classes = stepClasses()

func stepClasses() (codes []uint8) {
	for t := range types {
		for layer := range int16(4) {
			codes = append(codes, StepDSCP(ID{Type: t, Layer: layer}))
		}
	}
	slices.Sort(codes)
	slices.Reverse(codes)
	return slices.Compact(codes)
}

// Classes are the code points that transfers are marked with, the most urgent first. Packets
// of one connection should have one mark, or the network reorders them: so there is at most
// a connection for each.
func Classes() []uint8 { return slices.Clone(classes) }

// Class is a transfer's place among Classes.
func Class(id ID) int { return classOf[StepDSCP(id)] }

// classOf has the class of each code point.
var classOf = func() (of [64]int) {
	for i, code := range classes {
		of[code] = i
	}
	return of
}()
