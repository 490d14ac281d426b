# SPDX-License-Identifier: Apache-2.0
"""Run files of benchmarks."""
import json


def write(path, **sections):
    """Writes the sections, each a dictionary of its keys."""
    path.write_text("".join(f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items()) for name, keys in sections.items()))
    return path
