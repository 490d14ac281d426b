# SPDX-License-Identifier: Apache-2.0
"""What a soak has carried out and found."""
import collections
import time

import checks
import draw


class Tally:
    def __init__(self, seed, wanted):
        self.seed, self.wanted, self.began = seed, wanted, time.monotonic()
        self.faults = collections.Counter()
        self.on = collections.Counter()  # faults after which the attempt went on
        self.longest_on, self.longest_end = collections.defaultdict(float), collections.defaultdict(float)
        self.found = collections.Counter()
        self.families, self.meshes, self.schedules = collections.Counter(), collections.Counter(), collections.Counter()
        self.transports, self.settings = collections.Counter(), collections.Counter()

    def started(self, attempt):
        self.meshes[str(attempt.mesh)] += 1
        self.schedules[attempt.schedule] += 1
        self.transports[attempt.transport + (", supervised" if attempt.supervised else "")] += 1
        words = list(attempt.settings)
        self.settings.update(f"{key.split('.')[1]}={value}" for key, value in zip(words[::2], words[1::2]))

    def struck(self, kind):
        self.faults[kind] += 1

    def went_on(self, kind, seconds):
        self.on[kind] += 1
        self.longest_on[kind] = max(self.longest_on[kind], seconds)

    def ended(self, kind, seconds):
        self.longest_end[kind] = max(self.longest_end[kind], seconds)

    def finished(self, run):
        self.families[run.family.name] += 1

    def failed(self, kind):
        self.found[kind] += 1

    def ask_for_no_more(self):
        self.wanted = 0

    def enough(self):
        return self.faults.total() >= self.wanted

    def defects(self):
        return self.found.total()

    def line(self):
        minutes = (time.monotonic() - self.began) / 60
        return f"{self.faults.total()} faults, {self.families.total()} runs, {self.meshes.total()} starts, {minutes:.0f} min, {self.defects()} failures"

    def summary(self, missing):
        minutes = (time.monotonic() - self.began) / 60
        row = [self.faults.total(), self.families.total(), self.meshes.total(), *(self.found[kind] for kind in checks.KINDS)]
        lines = [f"seed {self.seed}, {minutes:.0f} minutes", "",
                 "| faults | runs that came to their end | starts | " + " | ".join(checks.KINDS) + " |", "|" + "---|" * len(row),
                 "| " + " | ".join(f"{value:,}" for value in row) + " |", "",
                 "| fault | times | until the run went on, s at most | until it had ended, s at most |", "|---|---|---|---|"]
        for kind in draw.KINDS:
            on = f"{self.longest_on[kind]:.1f}" if self.longest_on[kind] else ""
            end = f"{self.longest_end[kind]:.1f}" if self.longest_end[kind] else ""
            lines.append(f"| {kind} | {self.faults[kind] if kind not in missing else 'not here: ' + missing[kind]} | {on} | {end} |")
        for name, counts in (("models, by finished runs", self.families), ("meshes, by starts", self.meshes), ("schedules", self.schedules),
                             ("transports", self.transports), ("shards, policies, offloading", self.settings)):
            lines += ["", f"{name}: " + ", ".join(f"{key} ({count})" for key, count in sorted(counts.items()))]
        return "\n".join(lines)
