# SPDX-License-Identifier: Apache-2.0
"""A run directory against that of a run that nothing disturbed."""
import json
import re
import struct

COMPARED = ("step", "loss", "grad_norm", "lr", "tokens", "evaluation_loss", "balance_loss", "z_loss")


class Defect(AssertionError):
    """What must not happen; `kind` is one of KINDS."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


LOST, HANG, BITS, OTHER = "lost checkpoints", "hangs", "wrong bits", "other failures"
KINDS = (LOST, HANG, BITS, OTHER)


def require(true, kind, text):
    if not true:
        raise Defect(kind, text)


def lines_of(directory):
    """Whole lines of metrics.jsonl; the last one of a killed run may be a part."""
    try:
        return (directory / "metrics.jsonl").read_text().split("\n")[:-1]
    except OSError:
        return []


def steps_of(directory):
    return [[step.get(key) for key in COMPARED] for step in map(json.loads, lines_of(directory))]


def checkpoints_of(directory):
    """Steps of the complete ones, ascending."""
    folder = directory / "checkpoints"
    if not folder.is_dir():
        return []
    return sorted(int(found[1]) for entry in folder.iterdir() if (found := re.fullmatch(r"step-(\d+)", entry.name)))


def checkpoint(directory, step):
    return directory / "checkpoints" / f"step-{step:06d}"


def is_being_written(directory):
    try:
        return any(entry.name.endswith(".partial") for entry in (directory / "checkpoints").iterdir())
    except OSError:
        return False


def files_in(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def expect_checkpoint(directory, step, undisturbed):
    """Its files have the bytes of the undisturbed run's, whatever the mesh that wrote them."""
    is_, was = files_in(checkpoint(directory, step)), files_in(checkpoint(undisturbed, step))
    require(is_.keys() == was.keys(), LOST, f"the checkpoint of step {step} has the files {sorted(is_)}, not {sorted(was)}")
    for name in was:
        require(is_[name] == was[name], BITS, f"{name} of the checkpoint of step {step} differs from the undisturbed run's")


def expect_no_files(directory):
    """Of the run, on a host that is not rank 0's, but those that tell where ranks are."""
    if not directory.is_dir():  # ended before that host was asked
        return
    found = {entry.name for entry in directory.iterdir()} - {"positions.txt", "positions", "where"}
    require(not found, OTHER, f"rank 0 gathers, and {directory.name} has {sorted(found)}")


def expect_steps(directory, undisturbed, count=None):
    """One line a step, without a gap, with the undisturbed run's numbers."""
    is_, was = steps_of(directory), steps_of(undisturbed)
    require(count is None or len(is_) == count, BITS, f"metrics.jsonl has {len(is_)} lines, not {count}")
    for number, (found, wanted) in enumerate(zip(is_, was), 1):
        require(found == wanted, BITS, f"line {number} of metrics.jsonl has {found}, not {wanted}")


def expect_end(directory, undisturbed, steps):
    expect_steps(directory, undisturbed, steps)
    same = (directory / "weights.safetensors").read_bytes() == (undisturbed / "weights.safetensors").read_bytes()
    require(same, BITS, "weights.safetensors differs from the undisturbed run's")
    require(checkpoints_of(directory)[-1:] == [steps], LOST, f"there is no checkpoint of the last step: {checkpoints_of(directory)}")


def wall_times(directory):
    """Of the events in the newest event file: what the run took for the time of day."""
    files = sorted(directory.glob("events.out.tfevents.*"), key=lambda file: file.stat().st_mtime_ns)
    data = files[-1].read_bytes() if files else b""
    times, place = [], 0
    while place + 12 <= len(data):  # u64 length, u32 sum, the event, u32 sum; its first member is the time, a double
        (length,) = struct.unpack_from("<Q", data, place)
        if place + 12 + length > len(data):
            break
        if data[place + 12] == 0x09:
            times.append(struct.unpack_from("<d", data, place + 13)[0])
        place += 16 + length
    return times
