"""Save and load models without pickle, and certificates as JSON."""

from poisonproof.store.files import write_then_rename
from poisonproof.store.manifest import DataDigest, Manifest, data_digest
from poisonproof.store.models import StoredModel, load, open_model, save
from poisonproof.store.proofs import certificate_document, load_certificate, save_certificate

__all__ = [
    "DataDigest",
    "Manifest",
    "StoredModel",
    "certificate_document",
    "data_digest",
    "load",
    "load_certificate",
    "open_model",
    "save",
    "save_certificate",
    "write_then_rename",
]
