import json
import os
import subprocess
import tempfile
import unittest

import numpy as np
from graphs import blocks

import starling
from starling._process import binary


class Train(unittest.TestCase):
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
