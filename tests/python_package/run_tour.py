#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples/tour.ipynb runs from beginning to end, and shows what it says it shows.

Usage: run_tour.py PATH/TO/penstock [FOLDER to keep the pictures in]

Exit 0: it does; 1: not; 77: skipped, packages cannot be had.
"""
import base64
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import wheel

PICTURES = {"image/svg+xml": 2, "image/png": 3}  # schedules, and plots
LEAST_BYTES = 4000  # of a plot: empty axes of this size have fewer colours, and a third of it


def main():
    folders = wheel.install(sys.argv[1])
    sys.path[:0] = folders
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # of the notebook's own interpreter
    os.environ["PENSTOCK_ROOT"] = os.path.abspath(ROOT)
    import nbformat
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Manager(AsyncKernelManager):
        """Starts this interpreter, whatever kernels a machine has."""

        @property
        def kernel_spec(self):
            return KernelSpec(argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                              display_name="this Python", language="python")

    notebook = nbformat.read(os.path.join(ROOT, "examples", "tour.ipynb"), as_version=4)
    NotebookClient(notebook, timeout=300, kernel_manager_class=Manager).execute(cwd=os.path.join(ROOT, "examples"))
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    check(outputs)
    if len(sys.argv) > 2:
        keep(outputs, sys.argv[2])


def data_of(outputs, kind):
    return [output.data[kind] for output in outputs if "data" in output and kind in output.data]


def check(outputs):
    for kind, wanted in PICTURES.items():
        found = data_of(outputs, kind)
        assert len(found) == wanted, f"{len(found)} pictures of {kind}, not {wanted}"
    for picture in data_of(outputs, "image/png"):
        assert len(base64.b64decode(picture)) > LEAST_BYTES, "a plot is empty"
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    assert re.search(r"order - .*1B0", text), "the bad schedule was not found"
    assert "matrix products" in text, "the plan does not say why"
    print(f"{len(outputs)} outputs, {sum(PICTURES.values())} pictures")


def keep(outputs, folder):
    os.makedirs(folder, exist_ok=True)
    for i, picture in enumerate(data_of(outputs, "image/png")):
        with open(os.path.join(folder, f"plot-{i}.png"), "wb") as file:
            file.write(base64.b64decode(picture))
    for i, picture in enumerate(data_of(outputs, "image/svg+xml")):
        with open(os.path.join(folder, f"schedule-{i}.svg"), "w") as file:
            file.write(picture)


if __name__ == "__main__":
    main()
