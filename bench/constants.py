# SPDX-License-Identifier: Apache-2.0
"""Copies the fit's constants into the lines of hardware/ and engines/ that say "fitted".

Usage: bench/constants.py bench/results/reference_fit.txt   (from the root of the repository)
"""
import argparse
import pathlib
import re
import sys

LINE = re.compile(r"^(\w+)\.(\w+) of (.+?)  +(-?[0-9.]+) ")
ALSO = {("network", "efficiency"): "gradient_efficiency"}  # one constant for both, in hardware/published


def files_of(name):
    found = [path for folder in ("hardware", "hardware/published", "engines") for path in pathlib.Path(folder).glob(f"{name}.toml")]
    if not found:
        sys.exit(f"no file of hardware/ or engines/ is called {name}")
    return found


def write(path, section, key, value):
    lines, current = path.read_text().splitlines(), ""
    for number, line in enumerate(lines):
        if heading := re.match(r"\[(\w+)\]", line):
            current = heading[1]
        if current == section and re.match(rf"{key} = [0-9.]+ *# (as )?fitted", line):
            lines[number] = re.sub(r"= [0-9.]+", f"= {value}", line, count=1)
            path.write_text("\n".join(lines) + "\n")
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fit", type=argparse.FileType(encoding="utf-8"))
    for line in parser.parse_args().fit:
        if line.startswith("table "):
            break
        if not (found := LINE.match(line)):
            continue
        section, key, names, value = found.groups()
        value = str(float(value))
        for name in names.split(", "):
            for path in files_of(name):
                written = write(path, section, key, value)
                if (section, key) in ALSO and path.parent.name == "published":
                    write(path, section, ALSO[section, key], value)
                if not written:
                    print(f"{path}: {section}.{key} is not a fitted line there")


if __name__ == "__main__":
    main()
