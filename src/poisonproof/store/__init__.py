"""Save and load models without pickle, and certificates as JSON."""

from poisonproof.store.files import check_writable, write_then_rename
from poisonproof.store.manifest import DataDigest, Manifest, data_digest
from poisonproof.store.models import StoredModel, load, open_model, save, types_to_trust
from poisonproof.store.proofs import certificate_document, load_certificate, save_certificate

__all__ = [
    "DataDigest",
    "Manifest",
    "StoredModel",
    "certificate_document",
    "check_writable",
    "data_digest",
    "load",
    "load_certificate",
    "open_model",
    "save",
    "save_certificate",
    "types_to_trust",
    "write_then_rename",
]
