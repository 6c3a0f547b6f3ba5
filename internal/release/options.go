package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// command is a command as starling help --json lists it.
type command struct {
	Name, Use, Short, Long, Example string
	Flags                           []flagOf
	Commands                        []command
}

type flagOf struct {
	Name, Type, Default, Topic, Help string
	Values                           []string
}

// described asks a program for its commands and flags.
func described(binary string) (command, error) {
	out, err := exec.Command(binary, "help", "--json").Output()
	if err != nil {
		return command{}, fmt.Errorf("%s help --json: %w", binary, err)
	}
	var c command
	err = json.Unmarshal(out, &c)
	return c, err
}

// optionClasses are the classes of options of the Python package. Those that train has stand in its class alone.
var optionClasses = []struct{ class, command, base, about string }{
	{"TrainOptions", "train", "", "The options of starling train."},
	{"CompareOptions", "compare", "TrainOptions", "The options of starling compare, beside those of its runs."},
	{"PlanOptions", "plan", "TrainOptions", "The options of starling plan, beside those of the run."},
	{"PartitionOptions", "partition", "", "The options of starling partition."},
}

// ofPackage are flags that the package gives itself.
var ofPackage = []string{"json", "events", "quiet", "help-all", "dry-run", "seeds", "sweep", "verify", "from", "check",
	"vertices", "join", "rank", "measure-links", "help"}

// open are settings with more values than their lists.
var open = []string{"strategy", "device"}

// options writes the types of the Python package's options, from the flags of the program.
func options(binary string) ([]byte, error) {
	root, err := described(binary)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(`"""The options of commands, as types. Generated from starling help --json by go generate ./python."""
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict, Union

Auto = Literal["auto"]
Words = Union[str, Sequence[str]]
`)
	written := map[string][]string{} // by class
	for _, one := range optionClasses {
		i := slices.IndexFunc(root.Commands, func(c command) bool { return c.Name == one.command })
		if i < 0 {
			return nil, fmt.Errorf("%s has no command %s", binary, one.command)
		}
		base := "TypedDict"
		if one.base != "" {
			base = one.base
		}
		fmt.Fprintf(&b, "\n\nclass %s(%s, total=False):\n    \"\"\"%s\"\"\"\n\n", one.class, base, one.about)
		for _, f := range root.Commands[i].Flags {
			if slices.Contains(ofPackage, f.Name) || one.base != "" && f.Topic != "" || f.Name == "out" ||
				one.command == "partition" && (f.Name == "parts" || f.Name == "method") {
				continue
			}
			if slices.Contains(written[one.base], f.Name) {
				continue
			}
			written[one.class] = append(written[one.class], f.Name)
			help := f.Help
			if f.Default != "" && f.Default != "[]" && f.Default != "false" && f.Default != "0" {
				help += " (default " + f.Default + ")"
			}
			fmt.Fprintf(&b, "    %s: Annotated[%s, %q]\n", strings.ReplaceAll(f.Name, "-", "_"), f.pythonType(), help)
		}
	}
	return []byte(b.String()), nil
}

// pythonType is what Python may give for a flag.
func (f flagOf) pythonType() string {
	t := map[string]string{"bool": "bool", "int": "int", "int64": "int", "uint64": "int", "float": "float",
		"float64": "float", "stringSlice": "Words", "stringArray": "Words", "interval": "int | str"}[f.Type]
	switch {
	case t == "" && f.Values != nil && !slices.Contains(open, f.Name):
		return `Literal["` + strings.Join(f.Values, `", "`) + `"]`
	case t == "" && (f.Name == "fanout" || f.Name == "strategies"):
		return "Words | Sequence[int]"
	case t == "":
		return "str"
	case f.Default == "auto":
		return t + " | Auto"
	}
	return t
}
