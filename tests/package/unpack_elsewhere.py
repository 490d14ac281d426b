#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./dev package archives works where it is unpacked, with nothing of the build in sight.

Usage: unpack_elsewhere.py PATH/TO/penstock

The archive is unpacked into a folder of its own. In a mount namespace, in which the checkout, the cache of downloaded packages, and
every library that the build's program takes from outside of Open MPI and the C and C++ run time are hidden, its program must say what
the build's says, train alone and as ranks of mpirun to the same bits, and load no library of the build. Exit 0: so it is; 1: not;
77: skipped.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PATIENCE = 120  # seconds for anything
OF_SYSTEM = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|util|pthread|stdc\+\+|gcc_s)\.so.*)$")
PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
STEPS = ["--train.steps", "3", "--train.threads", "1", "--train.precision", "f32", "--data.seq_len", "64"]


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def namespace():
    """The command whose command has mounts of its own; without root, as root of a user namespace."""
    for command in (["unshare", "--mount"], ["unshare", "--mount", "--user", "--map-root-user"]):
        if shutil.which("unshare") and subprocess.run([*command, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0:
            return command
    skip("no namespace of mounts can be made here; enable it with: running it as root, outside of a container that forbids it")


def libraries(lines):
    """Names and paths of ldd's lines."""
    found = re.findall(r"^\s*(\S+) (?:=> (\S+) )?\(0x", lines, re.MULTILINE)
    return {pathlib.Path(name).name: pathlib.Path(path or name) for name, path in found if "vdso" not in name}


def ldd(path):
    return libraries(subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout)


class Elsewhere:
    """The unpacked package, and how a command is run beside it."""

    def __init__(self, program, folder):
        self.folder = folder
        self.namespace = namespace()
        unpack = f"set -o pipefail; '{SOURCE}/cmake/package.sh' '{program.parent}' | tar -x -C '{folder}'"
        subprocess.run(["bash", "-c", unpack], check=True)
        (self.package,) = folder.glob("penstock-*")
        self.program = self.package / "bin" / "penstock"
        of_build = ldd(f"{program}-compute")
        self.of_mpi = ldd(of_build["libmpi.so.40"]).keys() | {"libmpi.so.40"}
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        hidden_files = [path.resolve() for name, path in of_build.items() if name not in self.of_mpi and not OF_SYSTEM.match(name)]
        self.hides = [f"mount -t tmpfs none '{path}'" for path in (cache, SOURCE, program.parent) if path.is_dir()]
        self.hides += [f"if [ -e '{path}' ]; then mount --bind /dev/null '{path}'; fi" for path in hidden_files]

    def run(self, *command):
        """What it prints, in a shell that has nothing of the build."""
        environment = [f"{name}={value}" for name, value in {**PLAIN, "HOME": str(self.folder)}.items()]
        # Folders may lie in others that are hidden already.
        script = "; ".join(f"{hide} 2>/dev/null" for hide in self.hides) + '; exec env -i "$@"'
        words = [*self.namespace, "sh", "-c", script, "sh", *environment, *map(str, command)]
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def expect(condition, message):
    if not condition:
        sys.exit(f"failed: {message}")


def expect_own_libraries(elsewhere):
    loaded = libraries(elsewhere.run("ldd", f"{elsewhere.program}-compute"))
    loaded |= libraries(elsewhere.run("ldd", elsewhere.program))
    expect("libtorch_cpu.so" in loaded and "libmpi.so.40" in loaded, f"ldd lists {sorted(loaded)}")
    for name, path in loaded.items():
        own = path.resolve().is_relative_to(elsewhere.package)
        expect(own or name in elsewhere.of_mpi or OF_SYSTEM.match(name), f"{name} is {path}, which a node may lack")
        expect(not (own and OF_SYSTEM.match(name)), f"{name} is bundled, but must be the system's")
    unused = {path.name for path in (elsewhere.package / "lib").iterdir() if not path.is_symlink()}
    unused -= {path.resolve().name for path in loaded.values()}
    expect(not unused, f"{sorted(unused)} are bundled, but not loaded")


def expect_same_words(elsewhere, program):
    share = elsewhere.package / "share" / "penstock"
    version = elsewhere.run(elsewhere.program, "--version").split()
    expect(version == ["penstock", elsewhere.package.name.removeprefix("penstock-")], f"the version is {version}")
    for words in (["show", "--schedule", "slimpipe", "-p", "4", "-m", "2", "-n", "8"], ["man"], ["completion", "bash"],
                  ["simulate", share / "runs" / "moe.toml", "--hardware", share / "hardware" / "h100.toml"]):
        there = elsewhere.run(elsewhere.program, *words)
        here = subprocess.run([program, *words], check=True, capture_output=True, text=True, cwd=elsewhere.folder).stdout
        expect(there == here and there, f"penstock {words[0]} prints, unpacked:\n{there}\nin the build:\n{here}")
    plan = elsewhere.run(elsewhere.program, "plan", "--model", "llama-7b", "--gpus", "8", "--seq-len", "32768", "--hardware", "h100")
    expect("h100" in plan, f"penstock plan finds its hardware files:\n{plan}")
    for name in ("man/man1/penstock.1", "bash-completion/completions/penstock"):
        expect((elsewhere.package / "share" / name).stat().st_size > 1000, f"share/{name} is installed")


def expect_training(elsewhere):
    (elsewhere.folder / "corpus.txt").write_text("\n".join(str(number * number) for number in range(20000)))
    run_file = elsewhere.package / "share" / "penstock" / "runs" / "demo.toml"
    train = [elsewhere.program, "train", run_file, "--data.text", "corpus.txt", *STEPS]
    elsewhere.run(*train, "--parallel.pp", "1", "--output.dir", "alone")
    elsewhere.run("mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", *train, "--output.dir", "ranks")
    alone, ranks = ((elsewhere.folder / name / "weights.safetensors").read_bytes() for name in ("alone", "ranks"))
    expect(alone == ranks, "one rank and two leave the same weights")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="penstock-package-"))
    try:
        elsewhere = Elsewhere(program, folder)
        expect(elsewhere.run("ls", SOURCE) == "", "the checkout is hidden")
        expect_own_libraries(elsewhere)
        expect_same_words(elsewhere, program)
        expect_training(elsewhere)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("unpacked elsewhere, the package shows, simulates, plans and trains")


if __name__ == "__main__":
    main()
