#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What crossing from Python into Penstock costs: a million actions built, checked and simulated in Python and by the
program; the package's import, size and installation.

Usage: bench/python_border.py PATH/TO/penstock [--install]

Medians of three rounds. With --install also pip install . with nothing compiled before (ccache off).
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
import programs
import wheel

ROUNDS = 3
P, M = 50, 10_000  # 2·p·m actions


def median(call):
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def columns_of(schedule):
    import numpy

    parts = [schedule.columns(device) for device in range(schedule.devices)]
    joined = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
    joined["kind"] = numpy.array(list(".FBIW"))[joined["kind"]]
    return {"device": numpy.repeat(range(schedule.devices), [len(part["stage"]) for part in parts]), **joined}


def main():
    parser = programs.parser(__doc__)
    parser.add_argument("--install", action="store_true")
    asked = parser.parse_args()
    program = os.path.abspath(asked.program)
    folders = wheel.install(program)
    if asked.install:
        install(folders[1])
    sys.path[:0] = folders
    import penstock

    schedule = penstock.schedule("1f1b", p=P, m=M)
    columns = columns_of(schedule)
    tuples = list(tuples_of(schedule))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "million.csv")
        schedule.to_csv(path)
        check = median(lambda: programs.output(program, "check", path))
        simulate = median(lambda: programs.output(program, "simulate", path, "--json"))
    theirs = check + simulate
    print(f"{2 * P * M} actions of 1f1b on {P} devices: built, checked, simulated")
    print(f"  penstock check FILE, penstock simulate FILE    {theirs:.2f} s")
    for name, build in (("Python, from arrays (from_columns)", lambda: penstock.Schedule.from_columns(**columns)),
                        ("Python, from lists of tuples", lambda: penstock.Schedule(tuples)),
                        ("Python, by name", lambda: penstock.schedule("1f1b", p=P, m=M))):
        def whole():
            built = build()
            assert not built.check()
            built.simulate()

        ours = median(whole)
        print(f"  {name:45}  {ours:.2f} s, {ours / theirs:.2f} of the program's")
    code = "import time; start = time.perf_counter(); import penstock; print(time.perf_counter() - start)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    took = statistics.median(float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True,
                                                  text=True, check=True).stdout) for _ in range(5))
    print(f"import penstock                                  {1e3 * took:.0f} ms")
    size = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in
               os.walk(os.path.join(folders[0], "penstock")) for name in names if not name.endswith(".pyc"))
    print(f"installed package                                {size / 1e6:.1f} MB")


def tuples_of(schedule):
    for device in range(schedule.devices):
        columns = schedule.columns(device)
        kinds = [".FBIW"[kind] for kind in columns["kind"]]
        yield list(zip(kinds, columns["stage"].tolist(), columns["micro_batch"].tolist(), columns["slice"].tolist()))


def install(site):
    """A wheel of a tree in which nothing was built."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": site, "CCACHE_DISABLE": "1", "CMAKE_BUILD_PARALLEL_LEVEL": "2"}
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", folder,
                        f"--config-settings=build-dir={folder}/build", ROOT], check=True, env=environment)
        took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wheel_file = next(name for name in os.listdir(folder) if name.endswith(".whl"))
        print(f"pip wheel .                                      {processor:.0f} s of a processor, {took:.0f} s on "
              f"{os.cpu_count()} cores shared with other work; {os.path.getsize(os.path.join(folder, wheel_file)) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
