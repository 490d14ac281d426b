# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for the CUDA libraries that the wheel of PyTorch is linked with, for tests that use its processor half.

`import torch` loads the wheel's CUDA half too, and that needs 3 GB of NVIDIA's libraries, none of whose functions is
called without a GPU. A stand-in has the name of a missing library and the names and versions of the functions that the
wheel takes from it; a call of one ends the process.
"""
import glob
import hashlib
import os
import re
import shutil
import subprocess

NVIDIA = re.compile(r"(lib)?(cu|nccl|nv)")  # of libraries and of functions


def lines(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class Linked:
    """What the libraries of a folder need, by the tables of their dynamic sections."""

    def __init__(self, libraries):
        self.names, self.library_of, self.functions, self.defined = set(), {}, {}, set()
        for library in libraries:
            self.read_libraries(library)
            self.read_functions(library)

    def read_libraries(self, library):
        file = ""
        for line in lines("readelf", "-dVW", library):
            if found := re.search(r"\(NEEDED\).*\[(.*)\]", line):
                self.names.add(found[1])
            elif found := re.search(r"File: (\S+)", line):
                file = found[1]
            elif found := re.search(r"Name: (\S+)  Flags", line):
                self.library_of[found[1]] = file

    def read_functions(self, library):
        for line in lines("nm", "-D", library):
            kind, symbol = line.split()[-2:]
            name, _, version = symbol.partition("@")
            if kind == "U":
                self.functions[name] = version.lstrip("@")
            elif kind not in "wv":
                self.defined.add(name)

    def versions(self, library):
        """The functions taken from a library by the version that they are asked for in."""
        versions = {}
        for name, version in self.functions.items():
            if version and self.library_of.get(version) == library:
                versions.setdefault(version, []).append(name)
        return versions

    def unversioned(self):
        """Functions of which no table says where they come from; any library may have them."""
        return [name for name, version in self.functions.items()
                if not version and name not in self.defined and NVIDIA.match(name)]


def build_one(folder, library, versions, unversioned):
    source, script = os.path.join(folder, "functions.c"), os.path.join(folder, "versions.map")
    with open(source, "w") as file:
        for name in [*unversioned, *(name for names in versions.values() for name in names)]:
            file.write(f"void {name}(void) {{ __builtin_trap(); }}\n")
    with open(script, "w") as file:
        for version, names in versions.items():
            file.write(f"{version} {{ global: {' '.join(name + ';' for name in names)} }};\n")
    subprocess.run([os.environ.get("CXX", "g++"), "-x", "c", "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib",
                    f"-Wl,-soname,{library}", *([f"-Wl,--version-script={script}"] if versions else []), source,
                    "-o", os.path.join(folder, library)], check=True, capture_output=True, text=True)
    os.remove(source)
    os.remove(script)


def build(site, cache):
    """The folder of the stand-ins for the wheel in the folder `site`, built unless it is there."""
    with open(os.path.join(site, "torch", "version.py"), "rb") as file:
        digest = hashlib.sha256(site.encode() + file.read() + open(__file__, "rb").read()).hexdigest()[:12]
    folder = os.path.join(cache, f"cuda-stand-ins-{digest}")
    if os.path.isdir(folder):
        return folder
    libraries = sorted(glob.glob(os.path.join(site, "torch", "lib", "*.so*")))
    linked = Linked(libraries)
    present = {os.path.basename(path) for path in [*libraries, *glob.glob(os.path.join(site, "nvidia", "*", "lib", "*"))]}
    missing = sorted(name for name in linked.names - present if NVIDIA.match(name))
    partial = f"{folder}.partial-{os.getpid()}"
    os.makedirs(partial, exist_ok=True)
    try:
        for i, library in enumerate(missing):
            build_one(partial, library, linked.versions(library), linked.unversioned() if i == 0 else [])
        os.rename(partial, folder)
    except OSError:
        if not os.path.isdir(folder):  # else another test was faster
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
