import unittest

import numpy as np
from graphs import blocks

import starling

try:
    import pandas
    import polars
except ImportError as e:
    raise unittest.SkipTest(f"no pandas or no polars: {e}") from e


def shop(seed=0):
    """People who pay each other: two frames, rows of people shuffled."""
    edges, x, y = blocks(seed=seed)
    rng = np.random.RandomState(seed)
    names = np.array([f"user {i}" for i in range(len(y))])
    pays = pandas.DataFrame({"payer": names[edges[0]], "payee": names[edges[1]]})
    people = pandas.DataFrame({"user": names, "city": np.array(["Oslo", "Rome", "Bern"])[rng.randint(0, 3, len(y))],
                               "kind": np.array(["good", "bad", "ugly"])[y], **{f"x{i}": x[:, i] for i in range(4)}})
    return pays, people.sample(frac=1, random_state=seed).reset_index(drop=True)


OPTIONS = {"src": "payer", "dst": "payee", "id": "user", "label": "kind"}


class Frames(unittest.TestCase):
    def test_pandas(self):
        pays, people = shop()
        run = starling.train(pays, vertices=people, **OPTIONS, epochs=30, hidden=16)
        people["predicted"] = run.predict()
        self.assertGreater((people.predicted == people.kind).mean(), 0.8)
        new_pays, new_people = shop(seed=1)
        got = run.predict(new_pays, vertices=new_people)
        self.assertEqual(len(got), len(new_people))
        self.assertGreater((got == new_people.kind).mean(), 0.7)
        self.assertIsInstance(run.history, pandas.DataFrame)
        self.assertEqual(len(run.history), 30)
        self.assertIn("<svg", run._repr_html_())

    def test_polars(self):
        pays, people = shop()
        loss = [starling.train(p, vertices=v, **OPTIONS, epochs=3).report["loss"]
                for p, v in ((pays, people), (polars.from_pandas(pays), polars.from_pandas(people)))]
        self.assertEqual(*loss)

    def test_edges_alone(self):
        pays, _ = shop()
        model = starling.LinkPredictor(epochs=3, layers=1).fit(starling.dataset(pays, src="payer", dst="payee",
                                                                                features_from="degree"))
        self.assertEqual(len(model.predict([["user 1", "user 2"], ["user 3", "user 4"]])), 2)

    def test_comparisons(self):
        data = starling.dataset(*blocks())
        rows = starling.compare(data, models=["gcn", "sage"], epochs=2, workers=1)
        self.assertEqual(list(rows.strategy), ["gcn", "sage"])
        self.assertIn("bytes_total", rows)
        rows = starling.plan(data, workers=2, servers=2, rate="1gbit")
        self.assertIn("halo", list(rows.name))
        rows = starling.partition(data, 2, method=["hash", "multilevel"])
        self.assertLess(rows.edge_cut[1], rows.edge_cut[0])

    def test_mistakes(self):
        pays, people = shop()
        with self.assertRaisesRegex(starling.Mistake, "payer_"):
            starling.train(pays, vertices=people, src="payer_", dst="payee", id="user", label="kind")


if __name__ == "__main__":
    unittest.main()
