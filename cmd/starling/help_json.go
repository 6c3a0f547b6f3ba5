package main

import (
	"encoding/json"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/spec"
)

// describedCommand is a command as help --json lists it, for programs: pages of the manual and the Python package are
// made of it.
type describedCommand struct {
	Name     string             `json:"name"`
	Use      string             `json:"use"`
	Short    string             `json:"short"`
	Long     string             `json:"long,omitempty"`
	Example  string             `json:"example,omitempty"`
	Flags    []describedFlag    `json:"flags,omitempty"`
	Commands []describedCommand `json:"commands,omitempty"`
}

// describedFlag is one flag of it. A type of several is strings, separated by commas, or stringArray, given again.
type describedFlag struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Default string   `json:"default"`
	Values  []string `json:"values,omitempty"`
	Topic   string   `json:"topic,omitempty"`
	Help    string   `json:"help"`
}

func describe(c *cobra.Command) describedCommand {
	d := describedCommand{Name: c.Name(), Use: c.Use, Short: c.Short, Long: c.Long, Example: c.Example}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		one := describedFlag{Name: f.Name, Type: f.Value.Type(), Default: f.DefValue, Help: f.Usage}
		if topic := f.Annotations[spec.FlagTopic]; len(topic) > 0 {
			one.Topic = topic[0]
		}
		if complete, ok := c.GetFlagCompletionFunc(f.Name); ok {
			one.Values, _ = complete(c, nil, "")
		}
		d.Flags = append(d.Flags, one)
	})
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			d.Commands = append(d.Commands, describe(sub))
		}
	}
	return d
}

// writeHelp writes what help --json prints.
func writeHelp(c *cobra.Command) error {
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	return e.Encode(describe(c))
}
