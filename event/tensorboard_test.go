package event

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestTensorBoardFile: records have the checksums that the format asks for, and begin with the version. The checksum of
// "123456789" is the one that RFC 3720 gives of CRC-32C, masked as TensorFlow does. cmd/starling's TestTensorBoard
// reads a file with TensorBoard itself.
func TestTensorBoardFile(t *testing.T) {
	crc := uint32(0xe3069283)
	if got, want := maskedCRC([]byte("123456789")), (crc>>15|crc<<17)+0xa282ead8; got != want {
		t.Fatalf("%x, want %x", got, want)
	}
	dir := t.TempDir()
	tb, err := NewTensorBoard(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewTensorBoard(filepath.Join(dir, "a")) // of the same process and second
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	tb.On(Started{Metric: "accuracy", FirstEpoch: 3, Epochs: 5})
	tb.On(Epoch{Epoch: 3, Loss: 0.5, Measured: true, Train: 1, Val: math.NaN(), Test: 0.25})
	tb.On(Epoch{Epoch: 4, Loss: math.Inf(1)})
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "a", "*tfevents*"))
	if len(files) != 2 {
		t.Fatal(files)
	}
	most := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; len(b) > 0; n++ {
			length := binary.LittleEndian.Uint64(b)
			if maskedCRC(b[:8]) != binary.LittleEndian.Uint32(b[8:]) {
				t.Fatal("the checksum of a length")
			}
			data := b[12 : 12+length]
			if maskedCRC(data) != binary.LittleEndian.Uint32(b[12+length:]) {
				t.Fatal("the checksum of a record")
			}
			b = b[16+length:]
		}
		most = max(most, n)
	}
	if most != 4 { // the version, the log of the start, two epochs
		t.Errorf("%d records", most)
	}
}
