# SPDX-License-Identifier: Apache-2.0
"""What a soak has carried out and found."""
import collections

import checks
import draw


COUNTED = ("faults", "families", "meshes", "schedules", "transports", "settings", "sources", "found")
LONGEST = ("longest_on", "longest_end")


class Tally:
    """Of one worker; `struck` counts the faults of all."""

    def __init__(self, struck, wanted):
        self.all, self.wanted = struck, wanted
        for name in COUNTED + LONGEST:
            setattr(self, name, collections.Counter())

    def found_out(self):
        return {name: getattr(self, name) for name in COUNTED + LONGEST}

    def started(self, attempt):
        self.meshes[str(attempt.mesh)] += 1
        self.schedules[attempt.schedule] += 1
        self.transports[attempt.transport + (", supervised" if attempt.supervised else "")] += 1
        words = list(attempt.settings)
        self.settings.update(f"{key.split('.')[1]}={value}" for key, value in zip(words[::2], words[1::2]))

    def struck(self, kind):
        self.faults[kind] += 1
        with self.all.get_lock():
            self.all.value += 1

    def went_on(self, kind, seconds):
        self.longest_on[kind] = max(self.longest_on[kind], seconds)

    def ended(self, kind, seconds):
        self.longest_end[kind] = max(self.longest_end[kind], seconds)

    def finished(self, run):
        self.families[run.family.name] += 1

    def resumed(self, source):
        self.sources[source] += 1

    def failed(self, kind):
        self.found[kind] += 1

    def ask_for_no_more(self):
        self.wanted = 0

    def enough(self):
        return self.all.value >= self.wanted

    def defects(self):
        return self.found.total()

    def line(self):
        return f"{self.faults.total()} faults, {self.families.total()} runs, {self.meshes.total()} starts, {self.defects()} failures"


def summary(parts, missing):
    """Of what several workers have found out."""
    total = {name: sum((part[name] for part in parts), collections.Counter()) for name in COUNTED}
    longest = {name: {kind: max(part[name][kind] for part in parts) for kind in draw.KINDS} for name in LONGEST}
    row = [total[name].total() for name in ("faults", "families", "meshes")] + [total["found"][kind] for kind in checks.KINDS]
    lines = ["| faults | runs that came to their end | starts | " + " | ".join(checks.KINDS) + " |", "|" + "---|" * len(row),
             "| " + " | ".join(f"{value:,}" for value in row) + " |", "",
             "| fault | times | until the run went on, s at most | until it had ended, s at most |", "|---|---|---|---|"]
    for kind in draw.KINDS:
        seconds = [f"{longest[name][kind]:.1f}" if longest[name][kind] else "" for name in LONGEST]
        times = f"not here: {missing[kind]}" if kind in missing else total["faults"][kind]
        lines.append(f"| {kind} | {times} | " + " | ".join(seconds) + " |")
    for title, name in (("models, by finished runs", "families"), ("meshes, by starts", "meshes"), ("schedules", "schedules"),
                        ("transports", "transports"), ("shards, policies, offloading, copies", "settings"), ("went on from", "sources")):
        lines += ["", f"{title}: " + ", ".join(f"{key} ({count})" for key, count in sorted(total[name].items()))]
    return "\n".join(lines)
