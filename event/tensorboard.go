package event

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"
)

// TensorBoard writes the loss, the metric and the epochs' seconds for TensorBoard, as an event file of a folder. Such a
// file is a TFRecord, a record per event:
//
//	length uint64 │ masked CRC-32C of it uint32 │ event │ masked CRC-32C of it uint32
//
// and an event is the protocol buffer tensorflow.Event, of which these fields are used:
//
//	wall_time=1 double │ step=2 int64 │ file_version=3 string
//	summary=5 {value=1 {tag=1 string, simple_value=2 float}} │ session_log=7 {status=1}
//
// Steps are epochs, counted from 1.
type TensorBoard struct {
	f      *os.File
	now    func() time.Time
	metric string
	err    error
}

// NewTensorBoard makes a file in a folder, which is made too.
func NewTensorBoard(dir string) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	t := &TensorBoard{now: time.Now}
	for try := range 1000 {
		name := fmt.Sprintf("events.out.tfevents.%d.%s.%d.%d", timeOfDay(t.now())/1e9, host, os.Getpid(), try)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		t.f = f
		t.record(stringField(3, "brain.Event:2"), 0)
		return t, t.err
	}
	return nil, fmt.Errorf("%s: no name is free", dir)
}

// timeOfDay is nanoseconds since 1970: the format has the time of day.
func timeOfDay(t time.Time) int64 {
	return t.Sub(time.Unix(1, 0)).Nanoseconds() + 1e9
}

// On writes the numbers of an epoch.
func (t *TensorBoard) On(e Event) {
	switch e := e.(type) {
	case Started:
		t.metric = e.Metric
		if e.FirstEpoch > 0 { // TensorBoard forgets this epoch and those after it
			t.record(bytesField(7, varintField(1, 1)), e.FirstEpoch+1)
		}
	case Epoch:
		t.epoch(e)
	}
}

func (t *TensorBoard) epoch(e Epoch) {
	var summary []byte
	add := func(tag string, x float64) {
		if !math.IsNaN(x) {
			summary = append(summary, bytesField(1, append(stringField(1, tag), floatField(2, float32(x))...))...)
		}
	}
	add("loss", e.Loss)
	add("learning rate", e.LR)
	add("epoch seconds", e.Seconds)
	if e.Measured {
		add(t.metric+"/train", e.Train)
		add(t.metric+"/validation", e.Val)
		add(t.metric+"/test", e.Test)
	}
	t.record(bytesField(5, summary), e.Epoch+1)
}

// record writes an event. The first error is kept.
func (t *TensorBoard) record(what []byte, step int) {
	if t.err != nil {
		return
	}
	event := append(doubleField(1, float64(timeOfDay(t.now()))/1e9), varintField(2, uint64(step))...)
	event = append(event, what...)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b))
	b = append(b, event...)
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(event))
	_, t.err = t.f.Write(b)
}

// Close ends the file.
func (t *TensorBoard) Close() error {
	if err := errors.Join(t.err, t.f.Close()); err != nil {
		return fmt.Errorf("tensorboard: %w", err)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskedCRC is a checksum of TFRecords: data may hold checksums itself.
func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Fields of protocol buffers: a tag of the number and the kind of the value, and the value.

func varintField(number int, x uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3), x)
}

func doubleField(number int, x float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, uint64(number)<<3|1), math.Float64bits(x))
}

func floatField(number int, x float32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(nil, uint64(number)<<3|5), math.Float32bits(x))
}

func bytesField(number int, b []byte) []byte {
	out := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(number)<<3|2), uint64(len(b)))
	return append(out, b...)
}

func stringField(number int, s string) []byte { return bytesField(number, []byte(s)) }
