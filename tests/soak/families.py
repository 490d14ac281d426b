# SPDX-License-Identifier: Apache-2.0
"""Models and numerics whose bits no mesh, schedule or transport of the soak may change, and what may be drawn for them.

docs/mesh.md and docs/moe.md say what keeps bits: context ranks, and experts' replicas and ranks, are fixed in a family.
"""
import dataclasses
import itertools

MOST_RANKS = 4
STEPS = 40

SLICED = ("terapipe", "seq1f1b", "seq1f1b-interleaved", "slimpipe", "slimpipe chunks")
WHOLE = ("gpipe", "1f1b", "interleaved", "breadth-first", "breadth-first chunks", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min", "greedy",
         "dualpipe-v")
OF_TWO_CHUNKS = ("seq1f1b-interleaved", "slimpipe chunks", "interleaved", "breadth-first chunks", "zb-v", "v-half", "v-min", "greedy", "dualpipe-v")

RUN_FILE = """[model]
layers = 4
hidden = 16
ffn = 24
heads = 4
{model}
[data]
text = "{text}"
seq_len = 32
validation_fraction = 0.1
[train]
steps = {steps}
batch = 4
threads = 1
precision = "{precision}"
warmup_steps = 4
evaluate_every = 10
evaluate_sequences = 4
[numerics]
replicas = {replicas}
tensor = {tensor}
[schedule]
slices = {slices}
"""
GROUPED = "kv_heads = 2"
TIED = "tied_embeddings = true"
EXPERTS = "experts = 4\nexperts_per_token = 2\nmoe_ffn = 16"
NORMED = "kv_heads = 2\nhead_norms = true\n" + EXPERTS


@dataclasses.dataclass(frozen=True)
class Mesh:
    p: int = 1
    d: int = 1
    t: int = 1
    c: int = 1
    e: int = 1

    def ranks(self):
        return self.p * self.d * self.t * self.c

    def __str__(self):
        return " ".join(f"{name}={count}" for name, count in dataclasses.asdict(self).items() if count > 1) or "one rank"


@dataclasses.dataclass(frozen=True)
class Family:
    name: str
    model: str
    slices: int = 4
    precision: str = "f32"
    replicas: tuple = (1, 2, 4)  # numerics.replicas is the last
    tensor: tuple = (1,)  # and numerics.tensor
    context: int = 1
    mode: str = "auto"  # of context ranks
    experts: int = 1

    def meshes(self):
        every = (Mesh(p, d, t, self.context, self.experts) for p, d, t in itertools.product((1, 2, 3, 4), self.replicas, self.tensor))
        return [mesh for mesh in every if mesh.ranks() <= MOST_RANKS and mesh.ranks() // mesh.p % self.experts == 0]

    def schedules(self, mesh):
        names = SLICED if self.slices > 1 else WHOLE
        return [name for name in names if mesh.p <= 2 or name not in OF_TWO_CHUNKS]

    def run_file(self, text):
        return RUN_FILE.format(model=self.model, text=text, steps=STEPS, precision=self.precision, replicas=self.replicas[-1],
                               tensor=self.tensor[-1], slices=self.slices)


FAMILIES = (
    Family("dense", GROUPED),
    Family("dense, whole sequences", GROUPED, slices=1),
    Family("dense f64, tied embeddings", TIED, precision="f64", slices=1),
    Family("dense, two tensor shards", GROUPED, slices=2, replicas=(1, 2), tensor=(1, 2)),
    Family("dense, context ranks by query", GROUPED, slices=2, replicas=(1, 2), context=2, mode="query"),
    Family("dense, context ranks by heads", GROUPED, slices=2, replicas=(1, 2), tensor=(1, 2), context=2, mode="heads"),
    Family("experts on one rank", EXPERTS, replicas=(1,)),
    Family("experts over two replicas", NORMED, replicas=(2,), experts=2),
    Family("experts over two replicas, whole sequences", EXPERTS, slices=1, replicas=(2,), experts=2),
    Family("experts over tensor ranks", EXPERTS, slices=2, replicas=(1,), tensor=(2,), experts=2),
)


def schedule_words(name):
    """Of a schedule's name as above."""
    words = ["--schedule.name", name.split()[0]]
    if name in OF_TWO_CHUNKS and name != "greedy":
        words += ["--schedule.chunks", "2"]
    if name == "breadth-first":  # has two of its own accord, too many for three ranks and four layers
        words += ["--schedule.chunks", "1"]
    if name == "greedy":  # made for given times, so that no machine is measured for it
        words += ["--schedule.forward", "[1.0]", "--schedule.input", "[1.2]", "--schedule.weight", "[0.8]", "--schedule.transfer", "0.1"]
    return words


def mesh_words(family, mesh):
    words = ["--parallel.pp", str(mesh.p), "--parallel.dp", str(mesh.d), "--parallel.tp", str(mesh.t), "--parallel.cp", str(mesh.c)]
    if mesh.c > 1:
        words += ["--parallel.cp_mode", family.mode]
    return words + (["--parallel.ep", str(mesh.e)] if mesh.e > 1 else [])
