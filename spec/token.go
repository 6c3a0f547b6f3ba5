package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"starling/disk"
	"starling/event"
)

// TokenVariable is the environment variable that holds the workers' secret.
const TokenVariable = "STARLING_TOKEN"

const (
	shortestToken, longestToken = 16, 4096

	makeToken = "make one: (umask 077; head -c 32 /dev/urandom | base64 > token)"
)

// ReadToken reads the secret that workers share from a file, or from standard input if
// path is "-".
func ReadToken(path string) (token []byte, err error) {
	var b []byte
	if path == "-" {
		b, err = io.ReadAll(io.LimitReader(os.Stdin, longestToken+1))
	} else {
		if err := checkPrivate("--token-file", path); err != nil {
			return nil, err
		}
		b, err = ReadFile("--token-file", path, longestToken+1, "a file with the secret that workers share", makeToken)
	}
	if err != nil {
		return nil, err
	}
	return checkToken("--token-file", b)
}

// checkPrivate refuses a file of a secret that other users can read or write.
func checkPrivate(flag, path string) error {
	var public *disk.PublicError
	if errors.As(disk.CheckPrivate(path), &public) {
		return Mistake(flag, public.Found(), public.Want(), public.Fix())
	}
	return nil
}

// GivenToken is the secret of a file, if path names one, or else of the environment; nil: none
// is given.
func GivenToken(path string) ([]byte, error) {
	switch text := os.Getenv(TokenVariable); {
	case path != "":
		return ReadToken(path)
	case text != "":
		return checkToken(TokenVariable, []byte(text))
	}
	return nil, nil
}

func checkToken(from string, b []byte) ([]byte, error) {
	b = bytes.TrimSpace(b)
	if len(b) < shortestToken || len(b) > longestToken {
		return nil, Mistake(from, event.Tally(len(b), "character"),
			fmt.Sprintf("%d to %d", shortestToken, longestToken),
			makeToken)
	}
	return b, nil
}

// Load reads what the file or folder of a flag holds; nil: none is given.
func Load[T any](flag, path string, load func(path string) (*T, error)) (*T, error) {
	if path == "" {
		return nil, nil
	}
	held, err := load(path)
	if err != nil {
		return nil, Mistake(flag, Sentence(err), "", "")
	}
	return held, nil
}
