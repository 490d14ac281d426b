# SPDX-License-Identifier: Apache-2.0
"""The Python package, built and installed as users do (pip install .), into the folder of a build."""
import fcntl
import os
import subprocess
import sys

import packages


def install(program):
    """The folder to import penstock from, built from this tree, and the folder of the packages that its tests use."""
    site = packages.install("python", 0.6)
    build = os.path.join(os.path.dirname(os.path.abspath(program)), "python")
    target = os.path.join(build, "site")
    os.makedirs(build, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--root-user-action=ignore",
               "--no-build-isolation", "--no-deps", "--upgrade", "--target", target,
               f"--config-settings=build-dir={os.path.join(build, 'build')}", packages.ROOT]
    with open(os.path.join(build, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run at the same time
        done = subprocess.run(command, capture_output=True, text=True, timeout=1000,
                              env={**os.environ, "PYTHONPATH": site, "CMAKE_BUILD_PARALLEL_LEVEL": "2"})
    if done.returncode != 0:
        sys.exit(f"pip install . failed:\n{done.stdout[-6000:]}{done.stderr[-6000:]}")
    return target, site
