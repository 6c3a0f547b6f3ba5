package supervise

import (
	"maps"
	"sync"

	"starling/event"
)

// chosen keeps the settings that a run's own choices follow from.
type chosen struct {
	mu struct {
		sync.Mutex
		settings map[string]string
	}
}

// On implements event.Listener.
func (c *chosen) On(e event.Event) {
	if n, ok := e.(event.Note); ok && n.Settings != nil {
		c.mu.Lock()
		c.mu.settings = maps.Clone(n.Settings)
		c.mu.Unlock()
	}
}

// settings are the last ones; nil: there was nothing to choose.
func (c *chosen) settings() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.settings
}
