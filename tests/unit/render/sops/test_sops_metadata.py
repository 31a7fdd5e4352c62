"""What of SOPS' metadata is read, what is dropped, and what sops gets in its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.render.sops.sops_metadata import KmsKey, MetadataRefused, SopsMetadata, allowing, unflattened

MAC = "ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"
LEAST: dict[str, Any] = {"mac": MAC, "version": "3.9.0", "lastmodified": "2026-01-01T00:00:00Z"}
ARN = "arn:aws:kms:eu-central-1:123456789012:key/a"
AGE = {"age": [{"recipient": "age1a", "enc": "wrapped"}]}


def test_only_known_fields_and_one_key_reach_sops() -> None:
    found = SopsMetadata.read(
        {**LEAST, **AGE, "pgp": [{"fp": "AB", "enc": "x"}], "hc_vault": [{"vault_address": "http://v", "key_name": "k"}], "odd": 1}
    )
    written = json.loads(found.rewritten("age1new", "anew", "json"))
    assert written == {"age": [{"recipient": "age1new", "enc": "anew"}], **LEAST}
    assert found.recipients == ("age1a", "PGP AB", "Vault http://v k")


def test_what_decides_which_values_are_encrypted_is_kept() -> None:
    kept = {"encrypted_regex": "^data$", "mac_only_encrypted": "true"}
    found = SopsMetadata.read({**LEAST, **AGE, **kept})
    assert found.kept == {**LEAST, "encrypted_regex": "^data$", "mac_only_encrypted": True}
    assert "sops_mac_only_encrypted=true\n" in found.rewritten("age1new", "a\nb", "dotenv")
    assert "sops_age__list_0__map_enc=a\\nb\n" in found.rewritten("age1new", "a\nb", "dotenv")


def test_a_text_that_would_end_a_line_early_is_quoted_or_refused() -> None:
    found = SopsMetadata.read({**LEAST, **AGE, "encrypted_regex": "a#b"})
    assert "encrypted_regex = `a#b`\n" in found.rewritten("r", "w", "ini")
    with pytest.raises(MetadataRefused, match="more than one line"):
        SopsMetadata.read({**LEAST, **AGE, "encrypted_regex": "a\nage__list_0__map_enc = x"}).rewritten("r", "w", "ini")


@pytest.mark.parametrize("chosen", ["role", "aws_profile", "endpoint"])
def test_a_kms_key_that_chooses_a_credential_is_only_named(chosen: str) -> None:
    found = SopsMetadata.read({**LEAST, "kms": [{"arn": ARN, "enc": "eA==", chosen: "mine"}]})
    assert (found.kms, found.others) == ((), (f"{ARN} by a {chosen} that the file chooses",))


def test_what_passes_the_pipe_is_read_as_strictly_again() -> None:
    found = SopsMetadata.read({**LEAST, **AGE, "kms": [{"arn": ARN, "enc": "eA==", "context": {"a": "b"}}], "pgp": [{"fp": "AB"}]})
    assert found.kms == (KmsKey(ARN, "eA==", {"a": "b"}),)
    assert SopsMetadata.decode(json.loads(json.dumps(found.encode()))) == found
    for wrong in ([], [1, 2, 3, 4], [LEAST, [["r", 5]], [], []], [LEAST, [], [], []], [{}, [["r", "w"]], [], []]):
        with pytest.raises(ValueError, match=r"no metadata|not enough values"):
            SopsMetadata.decode(wrong)


def test_flat_metadata_is_the_same_as_nested() -> None:
    flat = {**LEAST, "age__list_0__map_recipient": "age1a", "age__list_0__map_enc": "wrapped"}
    assert SopsMetadata.read(unflattened(flat)) == SopsMetadata.read({**LEAST, **AGE})


@pytest.mark.parametrize(
    "flat",
    [{"a__map_b__map_c__map_d__map_e__map_f": "x"}, {"__map_a": "x"}, {"a": "x", "a__map_b__map_c": "y"}, {"a__map_b": "y", "a": "x"}],
)
def test_flat_metadata_that_is_no_tree_is_refused(flat: dict[str, str]) -> None:
    with pytest.raises(MetadataRefused):
        unflattened(flat)


def test_the_way_out_names_the_setting_that_fits_the_file() -> None:
    assert "decryption: {age: [{file: /etc/anneal/age.txt}]}" in allowing(SopsMetadata.read({**LEAST, **AGE}), "shop")
    assert f"decryption: {{kms: [{ARN}]}}" in allowing(SopsMetadata.read({**LEAST, "kms": [{"arn": ARN, "enc": "eA=="}]}))
    assert "sops rotate -i --add-age" in allowing(SopsMetadata.read({**LEAST, "pgp": [{"fp": "AB"}]}))
    for unused in ("age1pq1ehus", "age1yubikey1q"):
        only = {"age": [{"recipient": unused, "enc": "x"}]}
        assert "sops rotate -i --add-age" in allowing(SopsMetadata.read({**LEAST, **only}))
        assert "private key of age1a" in allowing(SopsMetadata.read({**LEAST, "age": [*only["age"], *AGE["age"]]}))
