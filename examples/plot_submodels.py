"""
How many submodels, or how many neighbours?
===========================================

Few submodels see many rows each and are accurate, but it takes few rows to move half of them. Many submodels are less
accurate and harder to move. So the best number depends on the radius you want; beyond some radius, the median of the
nearest neighbours certifies more than any ensemble.
"""

# %%
# Diamonds, with features, weights, ranges and an offset that are all declared: functions of one row. What is learnt is
# the logarithm of the price, and a prediction is right within 15 % of the price.
import matplotlib.pyplot as plt
import numpy as np

from poisonproof.datasets import load_dataset, preset
from poisonproof.plot import CertifiedAccuracyDisplay

diamonds = load_dataset("diamonds", "ours")
shuffled = np.random.default_rng(0).permutation(len(diamonds))
test, train = shuffled[:200], shuffled[200:10_200]

# %%
# Ensembles of kernel ridge on disjoint blocks, and neighbours.
submodels, neighbors = preset("diamonds", "low"), preset("diamonds", "high")
models = {f"{size} submodels": submodels.build(size) for size in (25, 101, 401)}
models["1,001 neighbours"] = neighbors.build(1001)

# %%
# Each certificate says, for every test row, how many inserted or deleted training rows its prediction withstands.
axes = plt.subplots(figsize=(6, 4), layout="constrained")[1]
for name, model in models.items():
    model.fit(diamonds.X[train], diamonds.y[train])
    certificate = model.certify(diamonds.X[test], diamonds.lower[test], diamonds.upper[test])
    CertifiedAccuracyDisplay.from_certificate(certificate, ax=axes, label=name)
    print(f"{name}: {np.mean(certificate.radius >= 0):.0%} right, median radius {np.median(certificate.radius):.0f}")
axes.set_title("Prices of diamonds within 15 %, 10,000 training rows")
