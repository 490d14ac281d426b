# SPDX-License-Identifier: Apache-2.0
"""Python packages that a test needs: from this Python, or installed from PyPI into the project's cache.

dependencies.txt lists them in lines "test GROUP REQUIREMENT". Where they cannot be had the test ends as skipped, and
says why.
"""
import ctypes
import fcntl
import glob
import hashlib
import importlib
import os
import shlex
import shutil
import subprocess
import sys

import cuda_stand_ins

SKIPPED = 77
PATIENCE_S = 900
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "penstock")


def skip(why, command):
    print(f"SKIPPED: {why}; enable it with: {command}", file=sys.stderr)
    sys.exit(SKIPPED)


def lines(kind):
    with open(os.path.join(ROOT, "dependencies.txt")) as file:
        return [line.split()[1:] for line in file if line.startswith(kind + " ")]


def import_failure(modules):
    """Why one of the modules cannot be imported; None when all can."""
    importlib.invalidate_caches()
    try:
        for module in modules:
            importlib.import_module(module)
    except (ImportError, OSError, ValueError) as error:  # the last two when a library of a wheel is missing
        return error
    return None


def install(group, gigabytes, alone=False):
    """The folder with the group's packages, installed unless it is there; alone: without those that they depend on."""
    requirements = [words[1] for words in lines("test") if words[0] == group]
    digest = hashlib.sha256(" ".join(requirements).encode()).hexdigest()[:12]
    folder = os.path.join(CACHE, f"python-{group}-{digest}")
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run at the same time
        if not os.path.isdir(folder):
            download(group, requirements, folder, gigabytes, ["--no-deps"] if alone else [])
    return folder


def download(group, requirements, folder, gigabytes, flags):
    free = shutil.disk_usage(CACHE).free / 1e9
    if free < 3 * gigabytes + 1:
        skip(f"{group} needs {gigabytes} GB of packages, but {CACHE} has only {free:.1f} GB free",
             f"XDG_CACHE_HOME=FOLDER_WITH_ROOM ./dev test {group}")
    partial = f"{folder}.partial-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-warn-conflicts",
               "--root-user-action=ignore", "--target", partial, *flags, *requirements]
    print(f"installing {', '.join(requirements)} ({gigabytes} GB)", file=sys.stderr, flush=True)
    try:
        subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True, text=True)
        os.rename(partial, folder)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        skip(f"pip cannot install the packages of {group}: {said[-1] if said else error}",
             f"python3 -m pip install {shlex.join(requirements)}")


def require(group, modules, gigabytes):
    """Makes the modules importable, or ends the test as skipped."""
    if import_failure(modules) is None:
        return
    for module in [name for name in sys.modules if name.split(".")[0] in modules]:
        del sys.modules[module]
    sys.path.insert(0, install(group, gigabytes))
    failure = import_failure(modules)
    if failure is not None:
        skip(f"{', '.join(modules)} cannot be imported: {failure}", f"rm -r {sys.path[0]} && ./dev test {group}")


def require_torch(modules=(), group=None, gigabytes=0.0):
    """Makes torch importable from the wheel that Penstock is linked with, and with it the modules of a group."""
    wanted = ["torch", "torch.distributed.pipelining", *modules]
    if import_failure(wanted) is None:
        return
    version = dict(words[0].split("==") for words in lines("pip"))["torch"]
    site = os.path.join(CACHE, f"torch-{version}")
    if not os.path.isdir(site):
        skip(f"LibTorch is not in {CACHE}", "./dev build")
    for module in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        del sys.modules[module]
    sys.path[:0] = [install("torch", 0.2), *([install(group, gigabytes)] if group else []), site]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no function of a stand-in is called
    try:
        for library in sorted(glob.glob(os.path.join(cuda_stand_ins.build(site, CACHE), "*"))):
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    except (subprocess.SubprocessError, OSError) as error:
        skip(f"the stand-ins for CUDA's libraries cannot be built: {getattr(error, 'stderr', None) or error}",
             f"python3 -m pip install torch=={version}")
    failure = import_failure(wanted)
    if failure is not None:
        skip(f"{', '.join(wanted)} cannot be imported: {failure}", f"rm -r {CACHE}/python-* && ./dev test pytorch")
