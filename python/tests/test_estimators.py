import pickle
import unittest

import numpy as np
from graphs import blocks

import starling

try:
    import sklearn.base
    import sklearn.utils.estimator_checks as checks
    from sklearn.model_selection import ParameterGrid
except ImportError as e:
    raise unittest.SkipTest(f"no scikit-learn: {e}") from e

# Those that do not fit: data of ours is a graph, theirs rows that stand alone.
RULES = ("check_estimator_cloneable", "check_estimator_repr", "check_get_params_invariance", "check_set_params",
         "check_valid_tag_types", "check_estimator_tags_renamed", "check_parameters_default_constructible")


class Estimators(unittest.TestCase):
    def test_rules(self):
        for model in (starling.NodeClassifier(model="sage", epochs=3), starling.LinkPredictor(hidden=16)):
            for rule in RULES:
                getattr(checks, rule)(type(model).__name__, model)

    def test_parameters(self):
        model = starling.NodeClassifier(model="sage", epochs=2)
        self.assertEqual(model.get_params(), {"model": "sage", "epochs": 2})
        other = sklearn.base.clone(model).set_params(epochs=3, weight_decay=0.1)
        self.assertEqual(other.get_params(), {"model": "sage", "epochs": 3, "weight_decay": 0.1})
        self.assertEqual(model.get_params()["epochs"], 2)
        with self.assertRaisesRegex(ValueError, "set_params: found 'epoch', want options of starling.train"):
            model.set_params(epoch=3)
        with self.assertRaisesRegex(ValueError, "NodeClassifier: found a model that is not fitted"):
            model.predict()
        self.assertTrue(sklearn.base.is_classifier(model))
        self.assertFalse(sklearn.base.is_classifier(starling.LinkPredictor()))

    def test_scores(self):
        edges, x, y = blocks()
        words = np.array(["red", "green", "blue"])[y]
        data = starling.dataset(edges, x, words)
        grid = ParameterGrid({"model": ["gcn", "mlp"], "hidden": [8]})
        models = [starling.NodeClassifier(epochs=15).set_params(**p).fit(data) for p in grid]
        best = max(models, key=lambda m: m.score(data, words))
        self.assertEqual(best.get_params()["model"], "gcn")
        self.assertEqual(sorted(best.classes_), ["blue", "green", "red"])
        most = best.classes_[best.predict_proba(data).argmax(1)]
        self.assertTrue((most == best.predict(data)).all())
        self.assertEqual(best.score(data, words), (best.predict() == words).mean())
        links = starling.LinkPredictor(epochs=3, layers=1).fit(data)
        self.assertGreater(links.score(), 0.5)

    def test_pickle(self):
        data = starling.dataset(*blocks())
        model = starling.NodeClassifier(epochs=2).fit(data)
        kept = pickle.dumps(model)
        want = model.predict()
        again = pickle.loads(kept)
        self.assertNotEqual(again.run_.folder, model.run_.folder)
        self.assertTrue((again.predict() == want).all())
        self.assertEqual(again.run_.report, model.run_.report)
        del model
        self.assertTrue((again.predict(data) == want).all())
        del again, data
        with self.assertRaisesRegex(starling.Mistake, "a saved run has no graph with it"):
            pickle.loads(kept).predict()


if __name__ == "__main__":
    unittest.main()
