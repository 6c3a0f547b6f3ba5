import os
import tempfile
import unittest
import warnings

import numpy as np

import starling
from starling import _process

try:
    import torch
    from torch_geometric.data import Data
except ImportError as e:
    raise unittest.SkipTest(f"no PyG: {e}") from e


def generated(room, *args):
    _process.run(["generate", *args, "--out", room, "--quiet"])
    return room


class PyG(unittest.TestCase):
    def setUp(self):
        room = tempfile.TemporaryDirectory()
        self.addCleanup(room.cleanup)
        self.room = room.name

    def test_data(self):
        folder = generated(self.room + "/g", "sbm", "--nodes", "400", "--edges", "4000", "--features", "16", "--classes", "4")
        data = starling.load(folder, as_="pyg")
        self.assertTrue(isinstance(data, Data) and data.validate())
        loss = [starling.train(d, model="sage", hidden=16, epochs=4).report["loss"] for d in (folder, data)]
        self.assertEqual(*loss)  # the bits of the program
        run = starling.train(data, model="gcn", epochs=20)
        predicted = run.predict(data)
        self.assertIsInstance(predicted, torch.Tensor)
        self.assertEqual(predicted.shape, data.y.shape)
        right = (predicted == data.y)[data.test_mask].float().mean().item()
        self.assertAlmostEqual(right, run.metrics["test_accuracy"], 6)

    def test_models(self):
        folder = generated(self.room + "/g", "sbm", "--nodes", "200", "--edges", "2000", "--features", "8", "--classes", "3")
        data = starling.load(folder, as_="pyg")
        for model in ("gcn", "sage", "gat", "gin", "resgcn+"):
            run = starling.train(data, model=model, hidden=16, epochs=3, row_normalize=model == "gcn")
            with torch.no_grad():
                net = run.to_pyg()
                logits = net(data.x, data.edge_index)
            apart = (logits.softmax(1) - run.probabilities()).abs().max().item()
            self.assertLess(apart, 1e-4, model)

    def test_hetero(self):
        folder = generated(self.room + "/g", "typed", "--like", "small", "--scale", "0.1")
        data = starling.load(folder, as_="pyg")
        self.assertTrue(data.validate())
        loss = [starling.train(d, model="rgcn", hidden=16, epochs=3).report["loss"] for d in (folder, data)]
        self.assertEqual(*loss)
        run = starling.train(data, model="hsage", hidden=16, epochs=3)
        self.assertEqual(run.predict().shape, data["paper"].y.shape)
        self.assertEqual(run.embeddings(type="author").shape[0], data["author"].num_nodes)

    def test_types_of_tensors(self):
        edges = torch.randint(0, 50, (2, 200))
        x, y = torch.randn(50, 4), torch.randint(0, 2, (50, 1))
        data = starling.dataset(Data(edge_index=edges, x=x.bfloat16(), y=y))
        self.assertEqual(data.meta["features"]["kind"], "bfloat16")
        starling.train(data, epochs=1)
        sparse = starling.dataset(Data(edge_index=edges.int(), x=x.relu().to_sparse(), y=y))
        dense = starling.dataset(Data(edge_index=edges, x=x.relu(), y=y))
        self.assertEqual(sparse.meta["features"]["kind"], "sparse")
        loss = [starling.train(d, epochs=2, dropout=0).report["loss"] for d in (sparse, dense)]
        self.assertTrue(np.allclose(*loss, atol=1e-5))
        self.assertEqual(starling.dataset(Data(edge_index=edges, x=x.double(), y=y.float())).meta["task"], "single-label")
        self.assertEqual(starling.dataset(Data(edge_index=edges, x=x, y=y + 0.5)).meta["task"], "regression")

    def test_mapped_tensors(self):
        path = self.room + "/x.npy"
        np.save(path, np.random.RandomState(0).randn(300, 1000).astype(np.float32))
        edges, y = torch.randint(0, 300, (2, 900)), torch.randint(0, 2, (300,))

        def linked(mode, **change):
            array = np.load(path, mmap_mode=mode)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that the tensor must not be written to
                x = torch.from_numpy(array)
            for at, value in change.items():
                x[0, int(at[1:])] = value
            made = starling.dataset(Data(edge_index=edges, x=x, y=y))
            self.assertTrue((made.array("features") == x.numpy()).all())
            return os.path.islink(made.path + "/features.npy")

        self.assertTrue(linked("r"))
        self.assertTrue(linked("c"))
        self.assertFalse(linked("c", _3=7.0))  # changed in memory alone
        self.assertFalse(linked(None))

    def test_loaded_tensors_are_mapped(self):
        folder = generated(self.room + "/g", "sbm", "--nodes", "2000", "--edges", "9000", "--features", "200", "--classes", "4")
        data = starling.load(folder, as_="pyg")
        made = starling.dataset(data)
        self.assertTrue(os.path.samefile(made.path + "/features.npy", folder + "/features.npy"))
        self.assertEqual(starling.train(made, epochs=2).report["loss"], starling.train(folder, epochs=2).report["loss"])
        data.x[1, 2] = 7.0
        changed = starling.dataset(data)
        self.assertFalse(os.path.islink(changed.path + "/features.npy"))
        self.assertEqual(changed.array("features")[1, 2], 7)

    def test_tensors_of_a_gpu(self):
        class OnGPU(torch.Tensor):  # none is here: what torch does with the tensors of one
            def numpy(self):
                raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")

            def cpu(self):
                return self.as_subclass(torch.Tensor)

        edges, x, y = torch.randint(0, 50, (2, 200)), torch.randn(50, 4), torch.randint(0, 2, (50,))
        run = starling.train(*(t.as_subclass(OnGPU) for t in (edges, x, y)), epochs=2)
        self.assertEqual(run.report["loss"], starling.train(edges, x, y, epochs=2).report["loss"])
        self.assertIsInstance(run.predict(), torch.Tensor)
        with self.assertRaisesRegex(starling.Mistake, "edge_index: found a tensor without values"):
            starling.train(edges.to("meta"), x, y)

    def test_sentences(self):
        edges = torch.zeros((2, 3), dtype=torch.long)
        with self.assertRaisesRegex(starling.Mistake, "data: found a Data without edge_index"):
            starling.train(Data(x=torch.zeros(3, 2)))
        with self.assertRaisesRegex(starling.Mistake, r"train: found a mask of shape \(3, 2\), want \(3,\); choose one column"):
            starling.train(Data(edge_index=edges, x=torch.zeros(3, 2), y=torch.zeros(3).long(),
                                train_mask=torch.ones(3, 2, dtype=torch.bool)))


if __name__ == "__main__":
    unittest.main()
