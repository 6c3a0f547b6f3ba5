package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// subcommand finds a command of the command line.
func subcommand(t *testing.T, words ...string) *cobra.Command {
	t.Helper()
	c, _, err := root(nil).Find(words)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// everyCommand calls do for all commands.
func everyCommand(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, do)
	}
}

// TestHelpHasNoEmptyHeading: a heading without flags is left out, and --device is among those that --help shows.
func TestHelpHasNoEmptyHeading(t *testing.T) {
	c := subcommand(t, "train")
	hideUncommon(c.Flags())
	help := byTopic(c.LocalFlags())
	for part := range strings.SplitSeq(help, "\n\n") {
		if !strings.Contains(part, "  --") {
			t.Errorf("nothing under %q", part)
		}
	}
	if !slices.Contains(flagsShown(help), "device") {
		t.Error("--device is not shown")
	}
}

// TestFlagsSayWhatTheyWant: a value that does not parse is refused with what is wanted, whatever the command.
func TestFlagsSayWhatTheyWant(t *testing.T) {
	texts := []string{"string", "strings", "stringSlice", "stringArray"}
	everyCommand(root(nil), func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if slices.Contains(texts, f.Value.Type()) {
				return
			}
			err := c.ParseFlags([]string{"--" + f.Name + "=?"})
			if err == nil {
				t.Errorf("%s --%s takes ?", c.CommandPath(), f.Name)
			} else if text := flagError(c, err).Error(); !strings.Contains(text, "--"+f.Name+`: found "?", want `) {
				t.Errorf("%s: %s", c.CommandPath(), text)
			}
		})
	})
	c := subcommand(t, "train")
	if text := flagError(c, c.ParseFlags([]string{"--lr=abc"})).Error(); !strings.Contains(text,
		`--lr: found "abc", want a number, for example 0.01`) {
		t.Error(text)
	}
}

// TestMethodAndPartitionerAreOneFlag: both names work in train and in partition, and may not contradict each other.
func TestMethodAndPartitionerAreOneFlag(t *testing.T) {
	for _, of := range []string{"train", "partition", "compare", "plan"} {
		for _, names := range [][2]string{{"method", "partitioner"}, {"partitioner", "method"}} {
			c := subcommand(t, of)
			err := c.ParseFlags([]string{"--" + names[0], "fennel", "--" + names[1], "fennel"})
			if err != nil || c.Flags().Lookup(names[1]).Value.String() != "fennel" {
				t.Errorf("%s: %v", of, err)
			}
			c = subcommand(t, of)
			if err := c.ParseFlags([]string{"--" + names[0], "hash"}); err != nil ||
				c.Flags().Lookup(names[1]).Value.String() != "hash" {
				t.Errorf("%s: %v", of, err)
			}
			err = c.ParseFlags([]string{"--" + names[1], "fennel"})
			if err == nil || !strings.Contains(flagError(c, err).Error(), "--"+names[1]+": found fennel beside --"+
				names[0]+" hash") {
				t.Errorf("%s: %v", of, err)
			}
		}
	}
	if help := byTopic(subcommand(t, "partition").LocalFlags()); slices.Contains(flagsShown(help), "partitioner") {
		t.Error("partition --help lists one flag twice")
	}
}
