# SPDX-License-Identifier: Apache-2.0
"""Ties the figures of README.md, CONTRIBUTING.md and docs/ to the files of bench/results that they come from.

Usage: bench/figures.py [--check]   (from the root of the repository)

Rewrites what the documents copy from those files (bench/run.sh calls it at its end) and lists what is left to do by hand;
--check rewrites nothing and lists copies that differ too. Exit 1 when something is listed. tests/docs runs the check.

Comments, which a reader of the page does not see, name the file. Copies stand between such a comment and <!-- end -->:

  <!-- table of bench/results/forecast.txt: | run | -->   the table whose head begins with "| run |"; or, where START begins
                                                          another paragraph, from that through the table after it, without
                                                          headings
  <!-- output of bench/results/demo.txt -->               the file without its head, as a block of output; or, with ": START",
                                                          the line that begins so and the indented ones after it
  <!-- page of bench/results/schedules.txt -->            the file without its head, as Markdown

Of a sentence, at its end, or in the line above a paragraph, list item, table or block of code:

  <!-- figures: bench/results/exchange.txt -->            each number in it is printed so in one of these files, but for signs
                                                          and thousands' commas; numbers in `code` are not looked at
  <!-- figures: none, a definition -->                    not measured here but a definition, a formula, a limit, a default, an aim
                                                          or assumed
  <!-- figures: none, published in FILE -->               each number is in that file of published figures
  <!-- figures: none, held by FILE -->                    a test there fails when it is not so

At the top of a page, for all its passages without such a comment:

  <!-- figures of this page: bench/results/papers.txt -->  what looks measured is printed so in one of these files, results or
                                                          published figures

A number with a unit of measurement or a decimal point in a passage without such a comment is an error, and so are numbers of a
table whose head names a unit; not in `code`, in "quotes" and in blocks of toml, which are input.
"""
import dataclasses
import itertools
import os
import pathlib
import re
import sys

COPY = re.compile(r"<!-- (table|output|page) of (\S+?)(?:: (.+))? -->")
END = "<!-- end -->"
MARK = re.compile(r"<!-- figures: (.*?) -->", re.DOTALL)
PAGE_MARK = re.compile(r"<!-- figures of this page: (.*?) -->", re.DOTALL)
NONE = re.compile(r"none, (?:a definition|a formula|a limit|a default|an aim|assumed|(published in|held by) (\S+))")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
QUOTED = re.compile(r'"[^"\n]*"')
NUMBER = re.compile(r"(?<![\w.,'])\d+(?:,\d{3})*(?:\.\d+)?(?!\w|[.,]\d)")
PRINTED = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
UNIT = (r"(?:%|×|(?:[nmµu]?s|min|(?:second|minute|hour|time)s?|[KMGT]i?B(?:/s)?|[GT]b/s|[KMGT]?FLOPs?(?:/s)?"
        r"|(?:[KM] )?tokens(?:/s| a second))(?!\w))")
MEASURED = re.compile(rf"(?<![\w.])\d+(?:,\d{{3}})*(?:\.\d+)?\s?{UNIT}|(?<![\w.])\d+\.\d+(?!\w|\.\d)")
UNIT_IN_HEAD = re.compile(rf"(?<!\w){UNIT}")
LIST_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
HEAD = re.compile(r"machine  (?P<machine>\S.*)\ncommit   (?P<commit>[0-9a-f]{7,12}\+?)\ndate     (?P<date>\d{4}-\d\d-\d\d)\n"
                  r"command  \./dev bench (?P<name>[\w-]+)(?: .*)?\n\n")
PATHS = re.compile(r"(?<![\w.~])/(?:home|root|tmp|work|mnt|Users)/\S*")


class Wrong(Exception):
    """A comment that says nothing usable, or a results file that lacks what it names."""


@dataclasses.dataclass
class Results:
    """A file of bench/results."""
    name: str
    head: dict
    body: str

    @staticmethod
    def read(root, name):
        path = root / name
        if not name.startswith("bench/results/") or not path.is_file():
            raise Wrong(f"{name} is no file of bench/results")
        text = path.read_text()
        head = HEAD.match(text)
        if not head:
            raise Wrong(f"{name} does not begin with machine, commit, date and command, as ./dev bench writes them")
        if path.stem != head["name"] and not path.stem.startswith(head["name"] + "-"):  # of one kind of machine
            raise Wrong(f"{name} is called as written by ./dev bench {head['name']}")
        found = PATHS.search(text)
        if found:
            raise Wrong(f"{name} names a path of one machine: {found[0]}")
        return Results(name, head.groupdict(), text[head.end():].strip("\n"))

    def after(self, parts, start, kind):
        """The parts from the only one that begins with `start`."""
        places = [i for i, part in enumerate(parts) if part.startswith(start)]
        if len(places) != 1:
            raise Wrong(f"{self.name} has {len(places) or 'no'} {kind} that begin with \"{start}\"; name one")
        return parts[places[0]:]

    def lines(self, start):
        first, *rest = self.after(self.body.splitlines(), start, "lines")
        return [first, *itertools.takewhile(lambda line: line.startswith(" "), rest)]

    def table(self, start):
        paragraphs = self.after([part.strip("\n") for part in re.split(r"\n[ \t]*\n", self.body) if part.strip()], start, "paragraphs")
        last = next((i for i, part in enumerate(paragraphs) if part.startswith("|")), None)
        if last is None:
            raise Wrong(f"{self.name} has no table after \"{start}\"")
        return "\n\n".join(part for part in paragraphs[:last + 1] if not part.startswith("#"))

    def caption(self, document):
        link = os.path.relpath(self.name, pathlib.Path(document).parent)
        return f"From [{self.name}]({link}): {self.head['machine']}; commit {self.head['commit']}, {self.head['date']}."


def copied(root, document, kind, name, start):
    """What stands between the comment of a copy and its end, as lines."""
    results = Results.read(root, name)
    if kind == "page":
        return [*results.body.splitlines()]
    if kind == "table":
        if not start:
            raise Wrong("a table needs the beginning of its head, or of the paragraph before it")
        return [*results.table(start).splitlines(), "", results.caption(document)]
    body = results.lines(start) if start else results.body.splitlines()
    return ["```", *body, "```", results.caption(document)]


def pieces(text):
    """("copy", comment, lines) and ("text", line number, lines), in order."""
    found, lines, i = [], text.split("\n"), 0
    while i < len(lines):
        comment = COPY.fullmatch(lines[i])
        if comment:
            if END not in lines[i:]:
                raise Wrong(f"\"{lines[i]}\" has no {END}")
            end = lines.index(END, i)
            found.append(("copy", comment, lines[i + 1:end]))
            i = end + 1
        else:
            if not found or found[-1][0] == "copy":
                found.append(("text", i + 1, []))
            found[-1][2].append(lines[i])
            i += 1
    return found


def passages(first, lines):
    """(line number, text) of each paragraph, list item, table and block of code, with a comment in the line above."""
    found, current, begin, fenced = [], [], first, False

    def close():
        if current:
            found.append((begin, "\n".join(current)))
        current.clear()

    for number, line in enumerate(lines, first):
        fence = line.startswith("```")
        only_comment = len(current) == 1 and COMMENT.fullmatch(current[0])
        if not fenced and (not line.strip() or (LIST_ITEM.match(line) and not only_comment)):
            close()
        if not current:
            begin = number
        if line.strip() or fenced:
            current.append(line)
        fenced ^= fence
        if fence and not fenced:
            close()
    close()
    return found


def numbers_in(text):
    return {number.replace(",", "") for number in PRINTED.findall(text)}


def unprinted(text, printed):
    """The numbers of a passage that are not among the printed ones."""
    bare = CODE.sub(" ", COMMENT.sub(" ", text))
    return [number for number in NUMBER.findall(bare) if number.replace(",", "") not in printed]


def figures_of(text):
    """What looks measured in a passage."""
    bare = QUOTED.sub(" ", COMMENT.sub(" ", text)).strip()
    if bare.startswith("```toml"):
        return []
    bare = bare if bare.startswith("```") else CODE.sub(" ", bare)
    head, _, rows = bare.partition("\n")
    in_table = NUMBER.findall(rows) if head.startswith("|") and UNIT_IN_HEAD.search(head) else []
    return in_table or [figure[0] for figure in MEASURED.finditer(bare)]


def numbers_of_files(root, names):
    found = set()
    for name in names:
        found |= numbers_in(Results.read(root, name).body if name.startswith("bench/results/") else (root / name).read_text())
    return found


def passage_findings(root, text, page):
    marks = MARK.findall(text)
    if len(marks) > 1:
        yield "has several comments about its figures; one can name several files"
    elif not marks:
        measured = figures_of(text)
        if page:
            printed = numbers_of_files(root, page)
            measured = [figure for figure in measured if not numbers_in(figure) <= printed]
        if measured:
            yield f"no comment says which file has: {', '.join(measured)}"
    elif marks[0].startswith("none"):
        yield from reason_findings(root, text, marks[0])
    else:
        names = [name.strip() for name in marks[0].split(",")]
        missing = unprinted(text, numbers_of_files(root, names))
        if missing:
            yield f"not printed in {', '.join(names)}: {', '.join(missing)}"


def reason_findings(root, text, mark):
    reason = NONE.fullmatch(mark)
    if not reason:
        raise Wrong(f"\"{mark}\" gives no reason that bench/figures.py knows")
    kind, name = reason.groups()
    if name and not (root / name).is_file():
        raise Wrong(f"there is no file {name}")
    missing = unprinted(text, numbers_in((root / name).read_text())) if kind == "published in" else []
    if missing:
        yield f"not in {name}: {', '.join(missing)}"


def document_findings(root, document):
    """(line, what is wrong) of one document."""
    text = (root / document).read_text()
    line = 1
    page = [name.strip() for name in ",".join(PAGE_MARK.findall(text)).split(",") if name.strip()]
    for kind, mark, lines in pieces(text):
        if kind == "copy":
            try:
                if copied(root, document, *mark.groups()) != lines:
                    yield line, f"differs from {mark[2]}; python3 bench/figures.py copies it anew"
            except Wrong as wrong:
                yield line, str(wrong)
            line += len(lines) + 2
            continue
        for number, passage in passages(line, lines):
            try:
                yield from ((number, found) for found in passage_findings(root, passage, page))
            except Wrong as wrong:
                yield number, str(wrong)
        line += len(lines)


def documents(root):
    return [str(path.relative_to(root)) for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]
            if path.exists()]


def findings(root):
    """What is wrong, a line each."""
    found = []
    for path in sorted((root / "bench" / "results").iterdir()):
        try:
            Results.read(root, str(path.relative_to(root)))
        except Wrong as wrong:
            found.append(str(wrong))
    for document in documents(root):
        try:
            found += [f"{document}:{line}: {what}" for line, what in document_findings(root, document)]
        except Wrong as wrong:
            found.append(f"{document}: {wrong}")
    return found


def rewrite(root, document):
    """Copies anew, and whether that changed the document; a copy whose file lacks it stays."""
    path = root / document
    lines = []
    for kind, mark, old in pieces(path.read_text()):
        if kind == "text":
            lines += old
            continue
        try:
            old = copied(root, document, *mark.groups())
        except Wrong:
            pass
        lines += [mark[0], *old, END]
    text = "\n".join(lines)
    changed = text != path.read_text()
    if changed:
        path.write_text(text)
    return changed


def main():
    root = pathlib.Path(".")
    if "--check" not in sys.argv[1:]:
        for document in documents(root):
            if rewrite(root, document):
                print(f"written: {document}")
    found = findings(root)
    print("\n".join(found), end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
