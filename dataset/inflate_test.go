package dataset

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

// deflated packs b at a level, in several flushed pieces if cut is not zero.
func deflated(t testing.TB, b []byte, level, cut int) []byte {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, level)
	if err != nil {
		t.Fatal(err)
	}
	if cut > 0 {
		w.Write(b[:cut])
		w.Flush()
	}
	w.Write(b[cut:])
	w.Close()
	return out.Bytes()
}

// samples are kinds of data: noise, runs, text, numbers of eight bytes, little, nothing.
func inflateSamples(r *rand.Rand) [][]byte {
	noise, few, numbers := make([]byte, 700_000), make([]byte, 300_000), []byte{}
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	for i := range few {
		few[i] = "abc"[r.IntN(3)]
	}
	for range 100_000 {
		numbers = binary.LittleEndian.AppendUint64(numbers, uint64(r.IntN(1<<20)))
	}
	skew := make([]byte, 200_000) // codes of every length
	for i := range skew {
		skew[i] = byte(min(255, int(r.ExpFloat64()*9)))
	}
	return [][]byte{nil, {7}, noise, few, numbers, skew, make([]byte, 500_000), bytes.Repeat([]byte("starling"), 9000), few[:300]}
}

// inflated unpacks at most so many bytes.
func inflated(r io.Reader, most int64) ([]byte, error) {
	in := newInflate(r)
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, most))
}

func TestInflateReadsWhatFlateWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for i, want := range inflateSamples(r) {
		for _, level := range []int{flate.HuffmanOnly, 0, 1, 6, 9} {
			packed := deflated(t, want, level, len(want)/3)
			for name, source := range map[string]io.Reader{"whole": bytes.NewReader(packed), "bytes": iotest.OneByteReader(bytes.NewReader(packed))} {
				got, err := inflated(source, math.MaxInt64)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatalf("sample %d, level %d, %s: %d bytes of %d, %v", i, level, name, len(got), len(want), err)
				}
			}
		}
	}
}

func TestInflateTellsOfAnEarlyEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for _, b := range inflateSamples(r)[1:] {
		packed := deflated(t, b[:min(len(b), 2000)], 6, 0)
		for n := range packed {
			if _, err := inflated(bytes.NewReader(packed[:n]), 1<<20); err != io.ErrUnexpectedEOF && err != errDeflate {
				t.Fatalf("%d of %d bytes: %v", n, len(packed), err)
			}
		}
	}
	failing := io.MultiReader(bytes.NewReader([]byte{4}), iotest.ErrReader(io.ErrClosedPipe))
	if _, err := inflated(failing, 1<<20); err != io.ErrClosedPipe {
		t.Fatalf("a source that fails: %v", err)
	}
}

// Damaged streams give the same bytes and fail where compress/flate fails.
func FuzzInflate(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, b := range inflateSamples(r) {
		for _, level := range []int{flate.HuffmanOnly, 0, 6} {
			f.Add(deflated(f, b[:min(len(b), 3000)], level, 0))
		}
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 22
		got, err := inflated(bytes.NewReader(packed), most)
		want, wantErr := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, flate says %v", err, wantErr)
		}
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes that differ from flate's %d", len(got), len(want))
		}
	})
}

// Bytes of random damage reach more than a fuzzer's few seconds in every test run.
func TestInflateAgreesOnDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, b := range inflateSamples(r)[2:] {
		for _, level := range []int{flate.HuffmanOnly, 0, 6} {
			packed := deflated(t, b[:min(len(b), 3000)], level, 0)
			for range 150 {
				bad := bytes.Clone(packed)
				for range 1 + r.IntN(3) {
					bad[r.IntN(min(len(bad), 100))] ^= 1 << r.IntN(8)
				}
				got, err := inflated(bytes.NewReader(bad), math.MaxInt64)
				want, wantErr := io.ReadAll(flate.NewReader(bytes.NewReader(bad)))
				if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
					t.Fatalf("%d bytes, %v; flate: %d bytes, %v", len(got), err, len(want), wantErr)
				}
			}
		}
	}
}

// The loop in assembly starts behind the first 32 KiB; damage beyond them gives what
// the one in Go gives.
func TestInflateAgreesWithItself(t *testing.T) {
	defer func(can bool) { canPlain = can }(canPlain)
	can := canPlain
	r := rand.New(rand.NewPCG(3, 6))
	for i, b := range inflateSamples(r)[2:] {
		for _, level := range []int{flate.HuffmanOnly, 1, 6} {
			packed := deflated(t, b[:min(len(b), 100_000)], level, 0)
			for k := range 40 {
				bad := bytes.Clone(packed)
				if k > 0 {
					bad[len(bad)/2+r.IntN(len(bad)/2)] ^= 1 << r.IntN(8)
				}
				canPlain = false
				want, wantErr := inflated(bytes.NewReader(bad), 1<<22)
				canPlain = can
				got, err := inflated(bytes.NewReader(bad), 1<<22)
				if err != wantErr || err == nil && !bytes.Equal(got, want) {
					t.Fatalf("sample %d, level %d: %d bytes, %v; in Go: %d bytes, %v", i+2, level, len(got), err, len(want), wantErr)
				}
			}
		}
	}
}

// Against klauspost's: numbers below 10 million as int64, 8 bytes each.
func BenchmarkInflate(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 5))
	var numbers []byte
	for range 1 << 20 {
		numbers = binary.LittleEndian.AppendUint64(numbers, uint64(r.IntN(10_000_000)))
	}
	packed := deflated(b, numbers, 6, 0)
	for name, open := range map[string]func(io.Reader) io.ReadCloser{"ours": newInflate, "std": flate.NewReader, "klauspost": otherInflate} {
		b.Run("reader="+name, func(b *testing.B) {
			b.SetBytes(int64(len(numbers)))
			for b.Loop() {
				in := open(bytes.NewReader(packed))
				io.Copy(io.Discard, in)
				in.Close()
			}
		})
	}
}

// A stored block, as a flush is one, may begin anywhere, also where input that was taken
// in with the block before has just given way to what follows.
func TestInflateStoredAcrossInput(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	b := make([]byte, 250_000)
	for i := range b {
		b[i] = byte(min(255, int(r.ExpFloat64()*9)))
	}
	at := 0
	for step := 1 << 17; step > 50; step /= 2 { // just below a buffer of input
		if len(deflated(t, b[:at+step], flate.HuffmanOnly, 0)) < inflateIn-inflateSlack {
			at += step
		}
	}
	for range 30 {
		at += 13
		got, err := inflated(bytes.NewReader(deflated(t, b, flate.HuffmanOnly, at)), math.MaxInt64)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("flushed after %d bytes: %d bytes of %d, %v", at, len(got), len(b), err)
		}
	}
}
