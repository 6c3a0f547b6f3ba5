import json
import os
import pydoc
import subprocess
import tempfile
import unittest

import numpy as np
from graphs import blocks

import starling
from starling._process import binary

# Flags that are not options of the package: it gives them itself, or they are for a terminal.
OF_THE_COMMAND = {"json", "events", "quiet", "help-all", "dry-run", "seeds", "sweep", "verify", "from", "check", "vertices",
                  "join", "rank", "measure-links", "out", "parts", "method"}


class Train(unittest.TestCase):
    def test_help_is_the_commands(self):
        out = subprocess.run([binary(), "help", "--json"], check=True, stdout=subprocess.PIPE).stdout
        flags = {c["name"]: {f["name"]: f for f in c["flags"]} for c in json.loads(out)["commands"] if "flags" in c}
        for of, base, kind, functions in (
            ("train", "train", starling.TrainOptions, (starling.train, starling.stream, starling.NodeClassifier)),
            ("compare", "train", starling.CompareOptions, (starling.compare,)),
            ("plan", "train", starling.PlanOptions, (starling.plan,)),
            ("partition", "partition", starling.PartitionOptions, (starling.partition,)),
        ):
            known = {**flags[of], **flags[base]}
            names = {n.replace("_", "-") for n in kind.__annotations__}
            self.assertEqual((set(flags[of]) | set(flags[base])) - names - OF_THE_COMMAND, set(), of)
            for function in functions:
                shown = " ".join(pydoc.plain(pydoc.render_doc(function)).replace("|", " ").split())
                for name in names:
                    want = f"{name.replace('-', '_')}: {known[name]['help'].replace('|', ' ')}"
                    self.assertIn(" ".join(want.split()), shown)

    def test_arrays(self):
        edges, x, y = blocks()
        run = starling.train(edges, x, y, model="sage", hidden=16, epochs=15)
        self.assertEqual(len(run.history["loss"]), 15)
        self.assertGreater(run.metrics["test_accuracy"], 0.8)
        predicted = run.predict()
        self.assertEqual(predicted.shape, y.shape)
        self.assertGreater((predicted == y).mean(), 0.8)
        self.assertTrue(np.allclose(run.probabilities().sum(1), 1, atol=1e-5))
        self.assertEqual(run.embeddings().shape, (300, 16))
        self.assertEqual(run.explain(5)["vertex"], "5")

    def test_bits_of_the_command(self):
        edges, x, y = blocks()
        data = starling.dataset(edges, x, y)
        run = starling.train(data, model="gcn", epochs=5, workers=2)
        out = subprocess.run([binary(), "train", data.path, "--model", "gcn", "--epochs", "5", "--workers", "2", "--quiet",
                              "--json", "-"], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(run.report["loss"], json.loads(out)["loss"])
        self.assertGreater(run.bytes["total"], 0)
        self.assertEqual(run.bytes["total"], run.plan["bytes"])

    def test_edge_order_is_nothing(self):
        edges, x, y = blocks()
        shuffled = edges[:, np.random.RandomState(1).permutation(edges.shape[1])]
        loss = [starling.train(e, x, y, epochs=3).report["loss"] for e in (edges, shuffled.astype(np.int32))]
        self.assertEqual(*loss)

    def test_words(self):
        edges, x, y = blocks()
        words = np.array(["red", "green", "blue"])[y].astype(object)
        words[7] = None
        run = starling.train(edges, x, words, epochs=15, hidden=16)
        self.assertGreater((run.predict() == words).mean(), 0.8)

    def test_splits(self):
        edges, x, y = blocks()
        mask = np.arange(300) < 200
        data = starling.dataset(edges, x, y, train=mask, val=np.arange(200, 250), test=np.arange(299, 249, -1))
        self.assertEqual([len(data.array(s)) for s in ("train", "val", "test")], [200, 50, 50])
        self.assertTrue((np.diff(data.array("test").astype(int)) == 1).all())
        starling.train(data, epochs=1)

    def test_callback_stops(self):
        edges, x, y = blocks()
        seen = []
        run = starling.train(edges, x, y, epochs=1_000_000, on_epoch=lambda e: seen.append(e["epoch"]) or len(seen) < 3)
        self.assertEqual(run.report["reason"], "interrupted")
        self.assertLess(len(run.report["loss"]), 1_000_000)
        self.assertEqual(len(run.predict()), 300)

    def test_linked_features(self):
        edges, x, y = blocks()
        with tempfile.TemporaryDirectory() as room:
            np.save(room + "/x.npy", x)
            data = starling.dataset(edges, np.load(room + "/x.npy", mmap_mode="r"), y)
            self.assertTrue(os.path.islink(data.path + "/features.npy"))
            half = starling.dataset(edges, np.load(room + "/x.npy", mmap_mode="r")[:, :4], y)
            self.assertFalse(os.path.islink(half.path + "/features.npy"))
            loss = [starling.train(d, epochs=2).report["loss"] for d in (data, starling.dataset(edges, x, y))]
            self.assertEqual(*loss)

    def test_loaded_arrays_are_mapped(self):
        edges, _, y = blocks(3000)
        x = np.random.RandomState(0).randn(3000, 100).astype(np.float32)
        kept = starling.dataset(edges, x, y)
        of = starling.load(kept.path, as_="numpy")

        def again(x):
            data = starling.dataset(of["edge_index"], x, of["y"])
            self.assertTrue((data.array("features") == x).all())
            return os.path.islink(data.path + "/features.npy")

        self.assertTrue(again(of["x"]))
        self.assertFalse(again(of["x"][:, :50]))
        of["x"][2999, 99] += 1  # in memory alone
        self.assertFalse(again(of["x"]))
        self.assertTrue((kept.array("features") == x).all())

    def test_saved(self):
        edges, x, y = blocks()
        with tempfile.TemporaryDirectory() as room:
            run = starling.train(edges, x, y, epochs=2)
            run.save(room + "/model")
            self.assertTrue(os.path.exists(room + "/model/model.safetensors"))
            with self.assertRaisesRegex(starling.Mistake, "model: found that it exists"):
                run.save(room + "/model")


if __name__ == "__main__":
    unittest.main()
