#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchtitan's own parser, models and split of layers against what Penstock writes and reads: job files that `penstock plan
--engine torchtitan --export` writes are read with their values; `penstock explain` knows each key, and has each model's sizes and
stages as torchtitan has them, or refuses it.

Usage: parse_exports.py PATH/TO/penstock

Only torchtitan's configuration is imported, from the wheel of PyPI that dependencies.txt names. Exit 0: all read with the
values that were written; 1: not; 77: skipped, packages cannot be had.
"""
import ast
import dataclasses
import json
import os
import re
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


def explain(program, text, gpus):
    """(exit code, what was said)."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([program, "explain", "--torchtitan", file.name, "--gpus", str(gpus)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def sections(config, prefix=""):
    """(section, {key: default}) of a JobConfig; None cannot be written."""
    keys = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if dataclasses.is_dataclass(value):
            yield from sections(value, f"{prefix}{field.name}.")
        elif value is not None:
            keys[field.name] = value
    if prefix and keys:
        yield prefix[:-1], keys


def unknown_keys(program):
    """Failures to read a job file with each key of torchtitan at its default; and keys of ours that it has not."""
    from torchtitan.config import JobConfig

    text = ""
    for section, keys in sections(JobConfig()):
        text += f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    code, said = explain(program, text, 8)
    if code != 0:
        print(f"torchtitan's defaults are not read: {said}")
    theirs = {f"{section}.{key}" for section, keys in sections(JobConfig(), "") for key in keys}
    empty = {"parallelism.pipeline_parallel_layers_per_stage", "parallelism.module_fqns_per_model_part"}  # None by default
    with open(os.path.join(HERE, "..", "..", "src", "plan", "trainers", "torchtitan_keys.inc")) as file:
        ours = file.read()
    names = {f"{section}.{key}" for section, keys in re.findall(r'^IDLE\("([\w.]+)",(.*?)\)$', ours, re.DOTALL | re.MULTILINE)
             for key in re.findall(r'"(\w+)"', keys)} | set(re.findall(r'^FIXED\("([\w.]+)"', ours, re.MULTILINE))
    optional = {"job.config_file", "job.save_config_file", "model.tokenizer_path", "lr_scheduler.total_steps",
                "lr_scheduler.decay_ratio", "training.dataset_path", "training.dataloader.prefetch_factor",
                "checkpoint.initial_load_path", "quantize.linear.float8.recipe_name", "fault_tolerance.semi_sync_method",
                "validation.dataset_path", "validation.dataloader.prefetch_factor", "debug.seed"}
    invented = names - theirs - empty - optional
    if invented:
        print(f"torchtitan has no {', '.join(sorted(invented))}")
    return (code != 0) + len(invented)


def flavors(site, name):
    """The sizes of a model's flavors, from its source: {flavor: {argument: value}}."""
    with open(os.path.join(site, "torchtitan", "models", name, "__init__.py")) as file:
        tree = ast.parse(file.read())
    table = next(node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict))
    class Names(dict):  # constructors become dicts of their arguments
        def __missing__(self, name):
            return lambda *arguments, **named: named
    return eval(compile(ast.Expression(table.value), name, "eval"), {"__builtins__": {}}, Names())


def llama3_ffn(sizes):
    """As FeedForward of torchtitan/models/llama3/model/model.py."""
    width = int(int(2 * 4 * sizes["dim"] / 3) * (sizes.get("ffn_dim_multiplier") or 1))
    unit = sizes.get("multiple_of", 256)
    return unit * ((width + unit - 1) // unit)


def llama4_ffn(sizes):
    """Of an expert, as TransformerBlock of torchtitan/models/llama4/model/model.py, which has one shared expert and one of
    those that are chosen."""
    width = int(int(int(2 * 4 * sizes["dim"] / 3) * sizes["ffn_dim_multiplier"]) / 2)
    return width + -width % sizes["multiple_of"]


def said_of(sizes):
    heads = sizes["n_heads"]
    experts = sizes.get("moe_args", {}) if sizes.get("moe_enabled") or sizes.get("interleave_moe_layer_step") == 1 else {}
    llama4 = "interleave_moe_layer_step" in sizes
    ffn = llama4_ffn(sizes) if llama4 else sizes["moe_inter_dim"] if experts else sizes.get("hidden_dim") or llama3_ffn(sizes)
    text = (f"{sizes['n_layers']} layers, hidden {sizes['dim']}, ffn {ffn}, {heads} heads of "
            f"{sizes.get('head_dim', sizes['dim'] // heads)} ({sizes.get('n_kv_heads', heads)} for keys and values), vocabulary "
            f"{sizes.get('vocab_size', 202048 if llama4 else 128256)}")
    if experts:
        text += f", {experts['num_experts']} experts ({experts.get('top_k', 1)} a token)"
        text += f" and one of {ffn} for all" if llama4 else ""
    return text + (", tied embeddings" if sizes.get("enable_weight_tying") else "")


def wrong_models(program, site):
    """Models whose sizes differ, or that are neither known nor refused with a reason."""
    wrong = 0
    for name in sorted(os.listdir(os.path.join(site, "torchtitan", "models"))):
        if not os.path.exists(os.path.join(site, "torchtitan", "models", name, "__init__.py")) or name == "moe":
            continue
        table = {"8B": {}} if name == "llama3_ft" else flavors(site, name)
        for flavor, sizes in table.items():
            code, said = explain(program, f'[model]\nname = "{name}"\nflavor = "{flavor}"\n', 1024)
            good = "is not predicted: it has" in said if code == 2 else said_of(sizes) in said
            wrong += not good
            print(f"{name} {flavor}: {'' if good else 'WRONG '}{said.splitlines()[1 if code != 2 else 0]}")
    return wrong


def wrong_stages(site):
    """Splits of layers other than those that tests/plan/torchtitan_test.cpp expects."""
    with open(os.path.join(site, "torchtitan", "distributed", "pipeline_parallel.py")) as file:
        tree = ast.parse(file.read())
    function = next(node for node in tree.body if getattr(node, "name", "") == "generate_llm_fqn_per_model_part")
    names = {}
    exec(compile(ast.Module([function], []), "split", "exec"), names)
    count = lambda *sizes: [sum(name.startswith("layers.") for name in stage) for stage in names[function.name](*sizes)]
    looped = count(8, 80, 1, 1)
    found = [count(4, 80, 1, 1), count(4, 80, 0, 0), [looped[i] + looped[i + 4] for i in range(4)],
             [looped[i] + looped[7 - i] for i in range(4)], count(8, 80, 1, 3)]
    with open(os.path.join(HERE, "..", "plan", "torchtitan_test.cpp")) as file:
        test = file.read()
    case = test[test.index("StagesHaveTheLayersThatTorchtitanGivesThem"):]
    expected = [[int(n) for n in row.split(",")] for row in re.findall(r"\{([0-9, ]+)\}\}", case[:case.index("for (const")])]
    if found != expected:
        print(f"torchtitan splits {found}, not {expected}")
    return found != expected


def main():
    config_manager = manager()
    site = os.path.dirname(sys.modules["torchtitan"].__path__[0])
    failures = unknown_keys(sys.argv[1]) + wrong_models(sys.argv[1], site) + wrong_stages(site)
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
