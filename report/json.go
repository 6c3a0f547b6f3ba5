package report

import (
	"encoding/json"
	"io"

	"starling/disk"
)

// WriteJSON writes v as one line of JSON to a file, whole or not at all, or for "-" to
// stdout.
func WriteJSON(v any, path string, stdout io.Writer) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if path == "-" {
		_, err := stdout.Write(b)
		return err
	}
	return writeFile(path, b)
}

func writeFile(path string, b []byte) error {
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}
