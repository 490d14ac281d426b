# SPDX-License-Identifier: Apache-2.0
"""penstock --train.device cuda: on a machine without a GPU the program for GPUs loads and says so, with exit 2; with one it trains
as the processor does (train_by_gpu.py).

Usage: train_on_gpu.py PENSTOCK PENSTOCK-CUDA
"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import cuda_stand_ins  # noqa: E402
import train_by_gpu  # noqa: E402

TOLERANCE = {"f64": 1e-10, "f32": 1e-4, "bf16": 1e-2}


def library_path(program):
    """Stand-ins for the libraries of NVIDIA's that LibTorch's CUDA half is linked with and this machine lacks."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    if "libtorch_cuda.so => not found" in linked:  # carried here: LibTorch is python3's, with all that it needs
        torch = pathlib.Path(importlib.util.find_spec("torch").origin).parent
        return f"{torch / 'lib'}:{torch.parent / 'nvidia' / 'cu13' / 'lib'}:{torch.parent / 'nvidia' / 'nccl' / 'lib'}"
    torch = pathlib.Path(re.search(r"libtorch_cuda\.so => (\S+)", linked)[1]).parents[1]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "penstock"
    return cuda_stand_ins.build(str(torch.parent), str(cache)) if "not found" in linked else ""


def main(penstock, for_gpus):
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [library_path(for_gpus), os.environ.get("LD_LIBRARY_PATH", "")]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        train_by_gpu.write_run(folder)
        done = train_by_gpu.train(penstock, folder, "--train.device", "cuda", "--output.dir", "out")
        if done.returncode == 0:
            print("a GPU is here")
            return train_by_gpu.main(penstock, for_gpus, TOLERANCE)
        assert done.returncode == 2 and "no CUDA device" in done.stderr and done.stdout == "", (done.returncode, done.stdout, done.stderr)
        assert len(done.stderr.splitlines()) == 1 and not (folder / "out").exists(), done.stderr
        print(f"no GPU is here; the program for GPUs says: {done.stderr.strip()}")


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
