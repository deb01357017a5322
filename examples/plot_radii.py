"""
What does a certificate know about each prediction?
===================================================

Accuracy is one number for a whole table. A radius belongs to one prediction, and says which predictions to rely on.
"""

# %%
# The 500 handwritten digits that are held out, ten classes, and 51 submodels that elect one of them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from poisonproof import CertifiedClassifier
from poisonproof.plot import RadiusDisplay

images, digits = load_digits(return_X_y=True)
shuffled = np.random.default_rng(0).permutation(len(digits))
test, train = shuffled[:500], shuffled[500:]
model = CertifiedClassifier(RidgeClassifier(alpha=10), n_partitions=51, classes=range(10))
certificate = model.fit(images[train], digits[train]).certify(images[test], digits[test])
print(certificate.summary(0))

# %%
# How the radii spread; wrong predictions have none.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
RadiusDisplay.from_certificate(certificate, ax=axes[0])

# %%
# The predictions that are easiest to move are also those that are wrong most often. No label of theirs was used to find
# that out: here rows are sorted by the radius of whatever class was predicted.
radius = model.certify(images[test]).radius
right = model.predict(images[test]) == digits[test]
order = np.argsort(radius)
share = [right[part].mean() for part in np.array_split(order, 10)]
axes[1].bar(range(1, 11), 100 * np.array(share))
axes[1].set(xlabel="tenths of the rows, by radius", ylabel="right predictions (%)", ylim=(50, 100))
print(f"the tenth that is easiest to move: {share[0]:.0%} right; the hardest: {share[-1]:.0%}")
