# SPDX-License-Identifier: Apache-2.0
"""Configurations of trainers that people run today."""
from __future__ import annotations

import os
from typing import Optional, Union

from . import _core, arguments, files


class Explanation(str):
    """What a configuration takes, what limits it and what would help, as text; fits: whether every device holds it."""

    fits: bool

    def __repr__(self) -> str:
        return str(self)


def explain(*, megatron: Optional[str] = None, torchtitan: Union[str, os.PathLike, None] = None, gpus: int,
            hardware: Union[str, os.PathLike] = "h100", memory_limit: str = "") -> Explanation:
    """What a configuration of Megatron-LM or torchtitan takes, term by term, what limits it and what would help: the text of
    `penstock explain`. What is in the configuration and is not predicted raises InputError, or stands in the text.

    megatron: the arguments as one text, "--num-layers 80 ..."; or torchtitan: the path of a job file (TOML). gpus: devices in
    all. hardware: "h800", "h100", ... or a file's path. memory_limit: most bytes of a device, as in "70GB".
    """
    megatron = "" if megatron is None else arguments.text("megatron", megatron)
    if (megatron == "") == (torchtitan is None):
        raise _core.InputError("give megatron, the arguments, or torchtitan, the path of a job file; one of the two")
    text, path = "", ""
    if torchtitan is not None:
        text, path = files.read("torchtitan", torchtitan, errors="strict")
    machine = arguments.text("hardware", os.fspath(hardware) if isinstance(hardware, os.PathLike) else hardware)
    told, fits = _core.explain(megatron, text, path, arguments.integer("gpus", gpus), machine,
                               arguments.text("memory_limit", memory_limit))
    explanation = Explanation(told)
    explanation.fits = fits
    return explanation
