#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Job files that `penstock plan --engine torchtitan --export` writes are read by torchtitan's own parser.

Usage: parse_exports.py PATH/TO/penstock

Only torchtitan's configuration is imported, from the wheel of PyPI that dependencies.txt names. Exit 0: all read with the
values that were written; 1: not; 77: skipped, packages cannot be had.
"""
import os
import subprocess
import sys
import tempfile
import tomllib
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import packages

PLANS = [("llama-70b-gqa", 64, 8192, 64, []),
         ("llama-70b-gqa", 64, 8192, 64, ["--search.pp=4", "--search.schedules=zb-v"]),
         ("llama-70b-gqa", 64, 8192, 64, ["--search.pp=8", "--search.schedules=interleaved", "--search.policies=full"]),
         ("llama-13b", 16, 4096, 64, ["--search.pp=2", "--search.schedules=1f1b"])]


def manager():
    """torchtitan.config without the rest of torchtitan, whose packages are many."""
    packages.require_torch()
    site = packages.install("torchtitan", 0.1, alone=True)
    sys.path.insert(0, site)
    package = types.ModuleType("torchtitan")
    package.__path__ = [os.path.join(site, "torchtitan")]
    sys.modules["torchtitan"] = package
    from torchtitan.config import ConfigManager

    return ConfigManager


def export(program, path, model, gpus, seq_len, batch, more):
    words = [program, "plan", "--model", model, "--gpus", gpus, "--seq-len", seq_len, "--batch", batch, "--hardware", "h100",
             "--engine", "torchtitan", "--export", path, *more]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL)


def main():
    config_manager = manager()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, (model, gpus, seq_len, batch, more) in enumerate(PLANS):
            path = os.path.join(folder, f"job-{i}.toml")
            export(sys.argv[1], path, model, gpus, seq_len, batch, more)
            config = config_manager().parse_args([f"--job.config_file={path}"])
            with open(path, "rb") as file:
                written = tomllib.load(file)
            for section, keys in written.items():
                for key, value in keys.items():
                    read = getattr(getattr(config, section), key)
                    if read != value:
                        failures += 1
                        print(f"{model}: {section}.{key} = {value!r} is read as {read!r}")
            parallel = config.parallelism
            ranks = (parallel.data_parallel_shard_degree * parallel.tensor_parallel_degree * parallel.context_parallel_degree *
                     parallel.pipeline_parallel_degree)
            if ranks != gpus:
                failures += 1
                print(f"{model}: {ranks} ranks, not {gpus}")
            print(f"{path}: read, {parallel.pipeline_parallel_schedule} over {parallel.pipeline_parallel_degree}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
