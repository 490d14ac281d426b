# SPDX-License-Identifier: Apache-2.0
"""Plans: the best way to run a model on a cluster; and costs of actions by a machine's speeds."""
from __future__ import annotations

import json
import numbers
import os
from typing import Any, Mapping, Optional, Sequence, Union

from . import _core, arguments, files
from .tables import Table

_core.add_description_home(os.path.dirname(os.path.abspath(__file__)))

USUAL_BATCH = 32


class Candidate:
    """A configuration: its sizes, policy, times and memory are attributes with the names of the program's JSON, among them
    tp, cp, ep, pp, dp, chunks, slices, group, micro_batch, schedule, policy, offload_ratio, step_s, mfu, tokens_per_s_per_gpu,
    bubble_fraction, peak_bytes (of the fullest device), host_bytes (offloaded, of the device with most), terms_s (seconds by
    term) and memory_bytes (by category)."""

    def __init__(self, core: Any, pareto: bool, number: int, values: dict[str, Any]):
        self._core, self._at = core, (pareto, number)
        self.__dict__.update(values)
        self.values = values

    @property
    def layout(self) -> str:
        """In one line, as the program prints it: "t2 c2 p4 d8 slimpipe n32 v5 balanced"."""
        return self._core.layout(*self._at)

    @property
    def why(self) -> str:
        """Every term of the step, the memory of each device, and what would make it fit if it does not."""
        return self._core.why(*self._at)

    @property
    def memory(self) -> Table:
        """Peak bytes of each device of the pipeline by category; total: their greatest sum at one time, which is less than
        the sum of peaks that do not coincide; host: what is offloaded.

        As the trainer predicts it, for the candidates for which the plan asked it; else in closed form.
        """
        rows = self._core.memory(*self._at)
        return Table({"device": list(range(len(rows))), **{name: [row[name] for row in rows] for name in rows[0]}})

    def run_file(self, directory: str = "runs/planned") -> str:
        """The run file (TOML) for `penstock train`, of plans for engine="penstock", with the arithmetic of the layout as
        comments."""
        return self._core.run_file(*self._at, arguments.text("directory", directory))

    def settings(self) -> str:
        """The trainer's own configuration, of plans for engine="megatron" (arguments) or "torchtitan" (a job file)."""
        return self._core.settings(*self._at)

    def __reduce__(self) -> tuple:
        raise TypeError("a Candidate cannot be pickled or copied; keep its values, a dict")

    def __repr__(self) -> str:
        return f"<Candidate {self.layout}: {self.values['step_s']:.6g} s>"


class Candidates(Sequence):
    """Candidates in order; a notebook shows them as a table."""

    COLUMNS = ("step_s", "tokens_per_s_per_gpu", "mfu", "peak_bytes", "host_bytes", "bubble_fraction")

    def __init__(self, candidates: list[Candidate]):
        self._list = candidates

    def __len__(self) -> int:
        return len(self._list)

    def __getitem__(self, number: Any) -> Any:
        return Candidates(self._list[number]) if isinstance(number, slice) else self._list[number]

    @property
    def table(self) -> Table:
        """A row for each: layout, step_s, tokens_per_s_per_gpu, mfu, peak_bytes, host_bytes, bubble_fraction."""
        columns: dict[str, list[Any]] = {"layout": [candidate.layout for candidate in self]}
        columns.update({name: [candidate.values[name] for candidate in self] for name in self.COLUMNS})
        return Table(columns)

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame."""
        return self.table.to_pandas()

    def __repr__(self) -> str:
        return repr(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


class Plan:
    """The answer to a question: `best` first, `pareto` by memory, `rejected` by reason."""

    def __init__(self, core: Any):
        self._core = core
        self._told = json.loads(core.to_json())
        self.best = Candidates([Candidate(core, False, i, values) for i, values in enumerate(self._told["best"])])
        """Fastest first."""
        self.pareto = Candidates([Candidate(core, True, i, values) for i, values in enumerate(self._told["pareto"])])
        """Ascending memory of the fullest device, each faster than all with less."""

    @property
    def question(self) -> str:
        """In one line."""
        return self._core.question

    @property
    def assumed(self) -> list[str]:
        """Speeds that the hardware file leaves open, with their defaults."""
        return self._core.assumed

    @property
    def candidates(self) -> int:
        """How many were looked at."""
        return self._told["candidates"]

    @property
    def fitting(self) -> int:
        """How many of them fit."""
        return self._told["fitting"]

    @property
    def rejected(self) -> dict[str, int]:
        """Candidates by the constraint that they break."""
        return self._told["rejected"]

    @property
    def interval(self) -> Optional[dict[str, Any]]:
        """Where the first's step lies with eight of ten such runs: low_s and high_s (seconds), from the errors on the `runs`
        published runs most like it, which were left out of the fit; own_engine: they are of its own engine; outside: in words,
        where nothing published is like the question. None where nothing is published: on CPUs."""
        return self._told.get("interval")

    @property
    def why(self) -> str:
        """Why the first is first: every term of its step, and its memory."""
        return self.best[0].why

    def to_json(self) -> str:
        """What `penstock plan --json` prints, without a line break at its end."""
        return self._core.to_json().rstrip("\n")

    def __reduce__(self) -> tuple:
        raise TypeError("a Plan cannot be pickled or copied; keep to_json()")

    def __repr__(self) -> str:
        return self._core.to_text()


def plan(file: Union[str, os.PathLike, None] = None, *, model: Union[str, os.PathLike, None] = None, gpus: Optional[int] = None,
         seq_len: Optional[int] = None, batch: Optional[int] = None, hardware: Optional[str] = None,
         engine: Optional[str] = None, explain: bool = False, options: Optional[Mapping[str, Any]] = None) -> Plan:
    """The best meshes, schedules and memory policies for a model on a cluster. Raises NoAnswer when nothing fits.

    file: a plan file (TOML); or model (a known one as "llama-70b-gqa", or the path of a config.json or of its folder) with
    gpus (devices in all) and seq_len (tokens); batch: sequences of a step (32). hardware: "h800", "h100", ... or a file's path;
    engine: the trainer, "penstock" by default. options: other keys of a plan file, {"search.pp": [4, 8], "memory.limit": "70 GB"}.
    explain: the one configuration of [layout] alone, which may not fit.
    """
    keys = _keys(options)
    if file is None and model is None and not any(key.startswith("model.") for key in keys):
        raise _core.InputError("which question? give a plan file; or model, gpus and seq_len")
    words: list[str] = []
    for key, name, value, word in (("model.name", "model", model, None), ("cluster.gpus", "gpus", gpus, arguments.integer),
                                   ("workload.seq_len", "seq_len", seq_len, arguments.integer),
                                   ("workload.global_batch", "batch", batch, arguments.integer),
                                   ("cluster.hardware", "hardware", hardware, _word), ("cluster.engine", "engine", engine, _word)):
        if value is not None and key in keys:
            raise _core.InputError(f"{name} and {key} of options are both given; keep one")
        if value is not None and word is not None:  # the model's word may be a path's
            words.append(f"--{key}={word(key, value)}")
    if file is None and batch is None and "workload.global_batch" not in keys:
        words.append(f"--workload.global_batch={USUAL_BATCH}")
    words += [f"--{key}={_word(key, value)}" for key, value in keys.items()]
    path = "" if file is None else arguments.text("file", files.named("file", file))
    return Plan(_core.answer(path, "" if model is None else _path("model", model), words, arguments.flag("explain", explain)))


def _path(what: str, value: Any) -> str:
    return arguments.text(what, arguments.path(what, value))


def _keys(options: Any) -> dict[str, Any]:
    if options is not None and not isinstance(options, Mapping):
        raise _core.InputError(f'options {arguments.shown(options)} is not a dict; as in {{"search.pp": [4, 8]}}')
    return {arguments.text("a key of options", key): value for key, value in (options or {}).items()}


def _word(key: str, value: Any) -> str:
    value = arguments.plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if arguments.is_list(value):
        return ",".join(_word(key, part) for part in value)
    if isinstance(value, int):
        return str(arguments.integer(key, value, -(2**63), 2**63 - 1))
    if not isinstance(value, (str, os.PathLike, numbers.Number)):
        raise _core.InputError(f"{key} = {arguments.shown(value)} is neither text, a number, True or False, nor a list of them")
    return arguments.text(key, str(value))


class Hardware:
    """A machine's speeds: a file of hardware/ by its name ("h800"), or a path."""

    def __init__(self, name: Union[str, os.PathLike]):
        self.name = _path("name", name)

    def costs(self, model: str, seq_len: int, *, micro_batch: int = 1, tensor: int = 1, context: int = 1,
              policy: str = "none") -> MachineCosts:
        """Costs of a model's actions on this machine, for Schedule.simulate(): the layers spread evenly over the schedule's
        stages, each sequence of seq_len tokens cut evenly into its slices.

        model: a known one, or the path of a config.json; micro_batch: sequences; tensor, context: ranks of each device;
        policy: what layers keep for the backward ("none" recomputes nothing, "balanced", "balanced+fc1", "full").
        """
        work = _core.MachineWork()
        work.model, work.policy = _path("model", model), arguments.text("policy", policy)
        for name, value in (("seq_len", seq_len), ("micro_batch", micro_batch), ("tensor", tensor), ("context", context)):
            setattr(work, name, arguments.integer(name, value, 1))
        return MachineCosts(self.name, work)

    def __repr__(self) -> str:
        return f"<Hardware {self.name}>"


class MachineCosts:
    """Made by Hardware.costs()."""

    def __init__(self, hardware: str, work: Any):
        self._hardware, self._work = hardware, work

    def __repr__(self) -> str:
        return f"<Costs of {self._work.model}, {self._work.seq_len} tokens, on {self._hardware}>"

    def core_program(self, schedule: Any) -> Any:
        """With the bytes of the model's messages."""
        return _core.machine_program(self._hardware, self._work, schedule._core)

    def core_costs(self, schedule: Any) -> Any:
        return _core.machine_costs(self._hardware, self._work, schedule._core)
