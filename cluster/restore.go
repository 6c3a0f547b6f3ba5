package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"starling/disk"
	"starling/nn"
)

// Latest reads the newest checkpoint in dir that is whole and that check, if set, has nothing against. Damaged newer
// ones are passed over, each with a warning. Without any the error is ErrNoCheckpoint.
func Latest(dir string, check func(folder string, c *Checkpoint) error, warn func(text string)) (*Checkpoint, error) {
	list, err := Checkpoints(dir)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Backward(list) {
		path := filepath.Join(dir, p.name())
		c, err := Load(path)
		if err == nil && c.Position != p {
			err = fmt.Errorf("%s: the state is of %v", path, c.Position)
		}
		if err == nil && check != nil {
			err = check(path, c)
		}
		if err == nil {
			return c, nil
		}
		if warn != nil {
			warn(fmt.Sprintf("checkpoint passed over because it is damaged: %v", err))
		}
	}
	if len(list) > 0 {
		return nil, fmt.Errorf("%s: %w: all %d are damaged", dir, ErrNoCheckpoint, len(list))
	}
	return nil, fmt.Errorf("%s: %w in this folder", dir, ErrNoCheckpoint)
}

// Load reads one checkpoint and checks every byte of it.
func Load(path string) (*Checkpoint, error) {
	b, err := readBounded(filepath.Join(path, stateFile), maxStateBytes)
	if err != nil {
		return nil, err
	}
	s, err := decodeState(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, stateFile), err)
	}
	c := &Checkpoint{Position: s.Position, Steps: s.Steps, Spec: s.Spec, History: s.History,
		Groups: map[string][]nn.Tensor{}}
	for name, mark := range s.Groups {
		file := filepath.Join(path, name+".safetensors")
		open, ranks := os.ReadFile, byRank().MatchString(name)
		if ranks {
			open = disk.Map
		}
		b, err := loadGroup(file, mark, open)
		if err != nil {
			return nil, err
		}
		if ranks {
			if c.Files == nil {
				c.Files = map[string][]byte{}
			}
			c.Files[name] = b
			continue
		}
		if c.Groups[name], _, err = nn.ReadSafetensors(bytes.NewReader(b), mark.Bytes); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return c, nil
}

// loadGroup compares a file with its mark before it reads it.
func loadGroup(path string, mark fileMark, open func(path string) ([]byte, error)) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != mark.Bytes {
		return nil, fmt.Errorf("%s: found %d bytes, want %d", path, info.Size(), mark.Bytes)
	}
	b, err := open(path)
	if err != nil {
		return nil, err
	}
	if got := fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)); got != mark.CRC32C {
		return nil, fmt.Errorf("%s: found contents with checksum %s, want %s", path, got, mark.CRC32C)
	}
	return b, nil
}

func readBounded(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: found %s of %d bytes, want a file of at most %d", path, info.Mode().Type(),
			info.Size(), most)
	}
	return os.ReadFile(path)
}

// decodeState parses and checks state.json.
func decodeState(b []byte) (*state, error) {
	s := &state{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("found no JSON of a checkpoint: %w", err)
	}
	switch {
	case s.Format != checkpointFormat:
		return nil, fmt.Errorf("format is %q, want %q", s.Format, checkpointFormat)
	case s.Version != checkpointVersion:
		return nil, fmt.Errorf("version is %d, want %d; it was written by a newer starling", s.Version,
			checkpointVersion)
	case s.Epoch < 0 || s.Batch < 0 || s.Steps < 0 || len(s.Groups) > maxGroups:
		return nil, fmt.Errorf("found %d epochs, %d steps and %d groups of arrays", s.Epoch, s.Steps, len(s.Groups))
	}
	for name := range s.Groups {
		if !groupName().MatchString(name) {
			return nil, fmt.Errorf("group %q is no name of a file", name)
		}
	}
	return s, checkSum(b, s.CRC32C)
}

// checkSum compares the bytes with the sum that is their own last field.
func checkSum(b []byte, want string) error {
	at := bytes.LastIndex(b, []byte(`"`+want+`"`))
	if len(want) != len(noSum) || at < 0 {
		return fmt.Errorf("crc32c is %q, want eight digits", want)
	}
	zeroed := bytes.Clone(b)
	copy(zeroed[at+1:], noSum)
	if got := fmt.Sprintf("%08x", crc32.Checksum(zeroed, castagnoli)); got != want {
		return fmt.Errorf("found contents with checksum %s, want %s", got, want)
	}
	return nil
}
