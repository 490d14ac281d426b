# SPDX-License-Identifier: Apache-2.0
"""The program that a benchmark measures: named on the benchmark's command line, and carried out. Where it fails, the benchmark ends with
the program's own words."""
import argparse
import shlex
import shutil
import subprocess
import sys


def parser(description):
    """The first argument is a program."""
    made = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("program", type=_program, help="build/release/penstock after ./dev build")
    return made


def _program(word):
    if shutil.which(word) is None:
        raise argparse.ArgumentTypeError(f"{word} is not a program")
    return word


def asked(description):
    """The program, of a benchmark that takes nothing else."""
    return parser(description).parse_args().program


def count(word):
    """Of an argument: a whole number above 0."""
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a whole number above 0")
    return int(word)


def one_of(known):
    """Of an argument: one of these words."""
    def checked(word):
        if word not in known:
            raise argparse.ArgumentTypeError(f"{word} is unknown; there are: {' '.join(known)}")
        return word

    return checked


def output(*command, **options):
    """What the command prints. `options`: subprocess.run's."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(words)}\nended with {done.returncode}:\n{(done.stderr or done.stdout).strip()[-4000:]}")
    return done.stdout
