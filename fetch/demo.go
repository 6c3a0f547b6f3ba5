package fetch

import (
	"context"

	"starling/dataset"
	"starling/setup"
	"starling/spec"
)

// makeHere writes a dataset that is not downloaded.
func (s *publicSet) makeHere(ctx context.Context, opt Options) (dataset.Summary, error) {
	for flag, given := range map[string]bool{"--mirror": opt.Mirror != "", "--cache": opt.Cache != "", "--keep": opt.Keep,
		"--symmetrize": opt.Symmetrize, "--standardize": opt.Standardize} {
		if given {
			return dataset.Summary{}, spec.Mistake(flag, "a setting without effect on a dataset that is not downloaded", "it only for others", "leave it out")
		}
	}
	if err := opt.checkOut(); err != nil {
		return dataset.Summary{}, err
	}
	return setup.UntilInterrupted(ctx, opt.Out, func() (dataset.Summary, error) { return s.make(opt.Out, opt.Overwrite) })
}
