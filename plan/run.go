package plan

import (
	"starling/resume"
	"starling/setup"
	"starling/spec"
)

// Run is a run of several workers that is planned.
type Run struct {
	Spec   *spec.Spec
	Parts  *setup.Parts
	From   *resume.Start  // nil: from the beginning
	counts []*workCounter // of the workers' dry runs; nil: not counted
}
