package main

import (
	"cmp"
	"os"
	"testing"
)

// TestTensorBoard reads what --tensorboard writes with TensorBoard itself: two runs of a folder, one of which was
// resumed, have the curves of --json.
func TestTensorBoard(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, trainArgs("--tensorboard", "runs/whole", "--json", "whole.json", "--eval-every", "3")...)
	resumed := []string{"--tensorboard", "runs/resumed", "--checkpoint-dir", "ck", "--checkpoint-every", "4",
		"--json", "resumed.json", "--eval-every", "3"}
	works(t, dir, trainArgs(append(resumed, "--epochs", "6")...)...)
	works(t, dir, trainArgs(append(resumed, "--resume")...)...)
	python(t, dir, cmp.Or(os.Getenv("STARLING_PYTHON"), "python3"), "tensorboard", `
import json, struct
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
runs = EventMultiplexer().AddRunsFromDirectory("runs").Reload()
assert sorted(runs.Runs()) == ["resumed", "whole"], runs.Runs()
single = lambda x: struct.unpack("f", struct.pack("f", x))[0]
for name in runs.Runs():
    result = json.load(open(name + ".json"))
    def same(tag, steps, values):
        got = [(e.step, e.value) for e in runs.Scalars(name, tag)]
        assert got == list(zip(steps, map(single, values))), (name, tag, got, steps, values)
    same("loss", range(1, 11), result["loss"])
    steps = [e + 1 for e in result["measured"]]
    same("accuracy/validation", steps, result["val_accuracy"])
    assert len(steps) > 2 and len(runs.Scalars(name, "accuracy/test")) == len(steps)
    assert len(runs.Scalars(name, "epoch seconds")) == len(runs.Scalars(name, "learning rate")) == 10
`)
}
