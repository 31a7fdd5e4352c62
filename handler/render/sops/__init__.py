"""SOPS: encrypted files of a commit become plain before any renderer reads them.

    see         which files of the tree are encrypted, for whom, where their metadata stands     encrypted_file, sops_metadata; in a child
    choose      the keys that the target lists; none: refused before anything is unwrapped       decryptor
    unwrap      a file's data key, by age keys                                                   data_keys; in a child
                or by KMS, under the handler's own identity                                      the app's
    rewrite     metadata that names one age key, made for this one call                          data_keys, sops_metadata; in the worker
    decrypt     sops itself, behind its walls: that file, that key, no network                   programs; in the child plain_file
    hide        what was encrypted joins the texts that nothing shows                            plain_file; in the child
    stand in    where no key is had on purpose: typed placeholders                               placeholders; in the child

Law: git chooses no credential. What isn't listed for the target is never used and never shown to sops; no renderer knows of it.
"""
