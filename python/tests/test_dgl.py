import tempfile
import unittest

import starling
from starling import _process

try:
    import dgl
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"no DGL: {e}") from e


class DGL(unittest.TestCase):
    def test_graph(self):
        with tempfile.TemporaryDirectory() as room:
            folder = room + "/g"
            _process.run(["generate", "sbm", "--nodes", "300", "--edges", "3000", "--features", "8", "--classes", "3", "--out",
                          folder, "--quiet"])
            g = starling.load(folder, as_="dgl")
            self.assertIsInstance(g, dgl.DGLGraph)
            loss = [starling.train(d, model="sage", hidden=16, epochs=3).report["loss"] for d in (folder, g)]
            self.assertEqual(*loss)
            run = starling.train(g, epochs=3)
            self.assertEqual(run.predict(g).shape, g.ndata["label"].shape)

    def test_heterograph(self):
        with tempfile.TemporaryDirectory() as room:
            folder = room + "/g"
            _process.run(["generate", "typed", "--like", "small", "--scale", "0.1", "--out", folder, "--quiet"])
            g = starling.load(folder, as_="dgl")
            made = starling.dataset(g)  # DGL sorts types by name
            before, after = (starling.load(d, as_="numpy")["edges"] for d in (folder, made.path))
            self.assertEqual(sorted(before), sorted(after))
            for relation, edges in before.items():
                self.assertEqual(sorted(edges.T.tolist()), sorted(after[relation].T.tolist()))
            self.assertEqual(starling.train(made, model="rgcn", hidden=16, epochs=2).predict().shape,
                             g.nodes["paper"].data["label"].shape)

    def test_weights(self):
        g = dgl.graph((torch.tensor([0, 1, 2]), torch.tensor([1, 2, 0])))
        g.ndata["feat"], g.ndata["label"] = torch.randn(3, 2), torch.tensor([0, 1, 0])
        g.edata["weight"] = torch.tensor([1.0, 2.0, 3.0])
        self.assertEqual(starling.dataset(g).array("weights").tolist(), [3, 1, 2])


if __name__ == "__main__":
    unittest.main()
