"""
Which suppliers can move a prediction?
======================================

Training rows often come from suppliers: feeds, crowds, partners. With ``partition_by="source"`` all rows of one
supplier fall into the same block, and a modification is anything that one supplier does: inserting, deleting and
changing as many of its rows as it likes.
"""

# %%
# The bundled diamonds, dealt out to 1,000 suppliers. Who supplied which stone is **made up** here.
import matplotlib.pyplot as plt
import numpy as np

from poisonproof import CertifiedRegressor, KernelRidge, load_diamonds
from poisonproof.plot import IntervalDisplay

rng = np.random.default_rng(0)
diamonds = load_diamonds()
shuffled = rng.permutation(len(diamonds.y))
test, train = shuffled[:60], shuffled[60:20_060]
X, y = diamonds.X, np.log(diamonds.y)
supplier = rng.integers(1000, size=len(train))

# %%
model = CertifiedRegressor(KernelRidge(alpha=0.03), n_partitions=75, partition_by="source", empty_value=8.5)
model.fit(X[train], y[train], groups=supplier)
certificate = model.certify(X[test], y[test] + np.log(0.85), y[test] + np.log(1.15))
print(certificate.summary(int(certificate.radius.argmax())))

# %%
# The other way round: where can three malicious suppliers move the predictions, and where can fifteen?
axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")[1]
for budget, ax in zip((3, 15), axes, strict=True):
    IntervalDisplay.from_estimator(model, X[test], budget, target=y[test], ax=ax)
axes[0].set_ylabel("logarithm of the price")

# %%
# A supplier that turns hostile, for real: every price of three suppliers is multiplied by 100, and the model is fitted
# again. Each prediction stays where the interval says.
hostile = np.isin(supplier, (17, 170, 700))
poisoned = np.where(hostile, y[train] + np.log(100), y[train])
band = model.interval(X[test], budget=3)
moved = model.fit(X[train], poisoned, groups=supplier).predict(X[test])
print(f"{np.mean((band.lower <= moved) & (moved <= band.upper)):.0%} of predictions stay inside their intervals")
