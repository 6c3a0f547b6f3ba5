package setup

import (
	"starling/event"
	"starling/graph"
)

// OrShrunk is a result and its error. Where a mapped file was shortened meanwhile, that is the error that others
// followed from; a run that came to its end all the same did not need what is missing, or got zeros of the
// file's last page, and says so.
func OrShrunk[T any](result *T, err error) func(events event.Listener) (*T, error) {
	return func(events event.Listener) (*T, error) {
		lost := graph.Shrunk()
		switch {
		case lost == nil:
			return result, err
		case err != nil:
			return nil, lost
		}
		events.On(event.Note{Text: "warning: " + lost.Error() + "; if it was read after that, the results are wrong"})
		return result, nil
	}
}
