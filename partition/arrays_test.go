package partition

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// arrayChecks says, for every array of a part, what is found although checksums are right.
//
//	load    any change, when the part is opened
//	peers   what is out of range when the part is opened, any other change when it is verified with its peers
//	value   what is out of range when the part is opened; another value is another graph
//	label   as value, but all bits set may be a label: none
var arrayChecks = map[string]string{
	"indptr.npy": "load", "indices.npy": "value", "weights.npy": "value", "edge_features.npy": "value",
	"dataset_order.npy": "load",
	"halo.npy":          "peers", "halo_indptr.npy": "load", "send.npy": "peers", "send_indptr.npy": "peers",
	"degrees.npy": "peers", "gcn_degrees.npy": "peers", "ids.npy": "peers",
	"features.npy": "value", "features_indptr.npy": "value", "features_indices.npy": "value",
	"features_values.npy": "value", "labels.npy": "label",
	"train.npy": "value", "val.npy": "value", "test.npy": "value",
}

// Every array of a part is changed, with its checksum made right.
func TestEveryArrayIsCheckedOnLoad(t *testing.T) {
	met := map[string]bool{}
	for seed := uint64(0); seed < 40 && len(met) < len(arrayChecks); seed++ {
		r := rand.New(rand.NewPCG(seed, 47))
		dir, _, _, k := written(t, r, 12+r.IntN(30))
		part := filepath.Join(dir, fmt.Sprintf("part%d", r.IntN(k)))
		p, err := OpenPartFolder(part, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		arrays := p.Meta.Arrays
		p.Close()
		for name, a := range arrays {
			check, ok := arrayChecks[name]
			if !ok {
				t.Fatalf("%s has no check: add it to the table and to the checks of a part", name)
			}
			if a.Bytes > headerBytes && !met[name] {
				met[name] = true
				changeArray(t, r, dir, part, name, check)
			}
		}
	}
	for name := range arrayChecks {
		if !met[name] {
			t.Errorf("no part of the test has %s", name)
		}
	}
}

// headerBytes is the length of the header of every array that Write makes.
const headerBytes = 128

// changeArray sets all bits of an element, then changes single bytes.
func changeArray(t *testing.T, r *rand.Rand, dir, part, name, check string) {
	path := filepath.Join(part, name)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer forge(t, part, name, whole)
	wide := map[string]int{"|u1": 1, "<u2": 2, "<u4": 4, "<i4": 4, "<f4": 4, "<i8": 8, "<f8": 8}[descrOf(whole)]
	data := whole[headerBytes:]
	at := headerBytes + r.IntN(len(data)/wide)*wide
	bad := slices.Clone(whole)
	copy(bad[at:at+wide], bytes.Repeat([]byte{0xff}, wide))
	forge(t, part, name, bad)
	if err := opens(part); check != "label" && !bytes.Equal(bad, whole) && !errors.Is(err, graph.ErrInput) {
		t.Errorf("%s: all bits set at byte %d: %v", name, at, err)
	}
	for range 4 {
		bad := slices.Clone(whole)
		at := headerBytes + r.IntN(len(data))
		bad[at] ^= byte(1 + r.IntN(255))
		forge(t, part, name, bad)
		err := opens(part)
		if err == nil && check == "peers" {
			err = Verify(dir)
		}
		if !errors.Is(err, graph.ErrInput) && (err != nil || check == "load" || check == "peers") {
			t.Errorf("%s: byte %d changed: %v", name, at, err)
		}
	}
}

func opens(part string) error {
	p, err := OpenPartFolder(part, OpenOptions{})
	if err == nil {
		p.Close()
	}
	return err
}

func descrOf(npy []byte) string {
	_, after, _ := strings.Cut(string(npy[:headerBytes]), "'descr': '")
	descr, _, _ := strings.Cut(after, "'")
	return descr
}

// forge replaces an array and makes the checksums right.
func forge(t *testing.T, part, name string, b []byte) {
	t.Helper()
	var m PartMeta
	path := filepath.Join(part, partFile)
	if err := readSealed(path, &m, &m.CRC32C); err != nil {
		t.Fatal(err)
	}
	a := m.Arrays[name]
	a.CRC32C = fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	m.Arrays[name] = a
	replace(t, filepath.Join(part, name), b)
	text, err := graph.SealJSON(&m, &m.CRC32C)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, text) // unlike writeSealed, without waiting for the disk
}
