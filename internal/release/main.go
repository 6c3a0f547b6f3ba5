// Release packs built binaries for those who install them.
//
//	go run ./internal/release wheel -binary bin/starling -out build/dist
//	go run ./internal/release all -version v1.2.3 -commit 0123456789ab -out build/release
//	go run ./internal/release options -binary bin/starling
//
// The second builds and packs everything of a release. The last writes the types of the Python package's options, from
// the flags of the program.
// The same binary and files always give the same bytes: names are sorted, times are fixed.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func do(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("found no command, want wheel, all or options")
	}
	f := flag.NewFlagSet(args[0], flag.ExitOnError)
	source := f.String("source", ".", "folder of the source")
	binary := f.String("binary", "bin/starling", "program")
	version := f.String("version", "", "version, as v1.2.3 or a commit")
	commit := f.String("commit", "", "commit that all is built from")
	only := f.String("only", "", "part of the names of targets that all builds, as linux-amd64; empty: all")
	out := f.String("out", "build/dist", "folder to write to")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o777); err != nil {
		return err
	}
	switch args[0] {
	case "wheel":
		tag, err := wheelTag(*binary)
		if err != nil {
			return err
		}
		name, err := wheel{*source, *binary, tag, pythonVersion(*version)}.write(*out)
		if err == nil {
			fmt.Println(name)
		}
		return err
	case "all":
		return release{*source, *version, *commit, *out}.all(*only)
	case "options":
		b, err := options(*binary)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(*source, "python", "starling", "_options.py"), b, 0o666)
	}
	return fmt.Errorf("found command %q, want wheel, all or options", args[0])
}
