# SPDX-License-Identifier: Apache-2.0
"""Headline claims of the papers that Penstock stands on, next to what `plan` and `simulate` say of the same setting, as
Markdown tables (docs/papers.md explains them). Published figures: bench/reference/papers.csv and atc24_throughput.csv.

Usage: bench/papers.py PATH/TO/penstock   (from the root of the repository)
"""
import csv
import json
import pathlib
import re
import subprocess
import sys

import programs

FOLDER = pathlib.Path("build/bench/papers")
FASTER = "h800-cudnn, 50 GB/s"  # a device's share of the network, as in h100.toml
YUAN = {"--model": "llama-175b", "--gpus": 256, "--batch": 256, "--hardware": "h800", "--cluster.engine": "kwai"}
SLIMPIPE = {"--model": "llama-70b-gqa", "--batch": 8}


# --- asking the program -----------------------------------------------------------------------------------------------

def words(flags):
    """--key=value: without a plan file a word alone would be taken for one."""
    return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in flags.items()]


def ask(program, flags, *more):
    return subprocess.run([program, "plan", *more, "--json", *words(flags)], capture_output=True, text=True)


def plan(program, flags, *more):
    """The best candidate, with whether it fits."""
    ended = ask(program, flags, *more)
    if not ended.stdout:
        sys.exit(f"{' '.join(ended.args)}\n{ended.stderr}")
    answer = json.loads(ended.stdout)
    return answer["best"][0] | {"fits": answer["fitting"] > 0}


def explain(program, flags, *more):
    """The one candidate of [layout]."""
    return plan(program, flags, *more, "--explain")


def layout(**keys):
    return {f"--layout.{key}": value for key, value in keys.items()}


def simulate(program, schedule, p, m, *flags):
    return json.loads(programs.output(program, "simulate", "--schedule", schedule, "-p", p, "-m", m, *flags, "--json"))


def hardware(name):
    """The file of a name; the faster network's is written first."""
    if name != FASTER:
        return name
    path = FOLDER / "h800-cudnn-50.toml"
    text = pathlib.Path("hardware/h800-cudnn.toml").read_text()
    path.write_text(re.sub(r"(?m)^gbps_per_gpu = .*$", "gbps_per_gpu = 50.0", text))
    return path.resolve()


def closed_mfu(best):
    return best["mfu"] * best["step_s"] / best["closed_form_s"]


# --- printing ---------------------------------------------------------------------------------------------------------

def table(title, head, rows):
    print(f"## {title}\n\n| {' | '.join(head)} |\n{'|---' * len(head)}|")
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def percent(share):
    return f"{100 * share:.1f} %"


def claims():
    with open("bench/reference/papers.csv") as file:
        return {(row["paper"].split()[0], row["claim"]): row["published"] for row in csv.DictReader(file)}


def error(ours, published):
    return f"{100 * (ours / published - 1):+.1f} %"


def name_of(best):
    parts = [("t", "tp"), ("c", "cp"), ("p", "pp"), ("d", "dp"), ("v", "chunks")]
    sizes = " ".join(f"{letter}{best[key]}" for letter, key in parts if best[key] > 1)
    return f"{sizes} {best['policy']}" + (f" α {best['offload_ratio']:.2f}" if best["offload_ratio"] else "")


# --- Yuan et al. ------------------------------------------------------------------------------------------------------

def unseen_errors():
    """Row of atc24_throughput.csv to its error with the row, and with the configuration, left out of the fit."""
    text = pathlib.Path("bench/results/reference_fit.txt").read_text()
    found = re.findall(r"(?m)^atc24_throughput (\d+): .*?(-?[\d.]+ %) +(-?[\d.]+ %) +(-?[\d.]+ %) +(-?[\d.]+ %)$", text)
    return {int(row): errors[1:3] for row, *errors in found}


def published_rows():
    with open("bench/reference/atc24_throughput.csv") as file:
        return list(enumerate(csv.DictReader(file), 1))


def yuan_throughput(program):
    """Rows that the constants of h800 are fitted on."""
    score = programs.output(program, "plan", "--score", "bench/reference/atc24_throughput.csv", "--json")
    predicted = {row["row"]: row["predicted"] for row in json.loads(score)["rows"]}
    unseen = unseen_errors()
    rows = []
    for number, row in published_rows():
        if row["figure"] == "table8" and row["tokens_per_second"] != "OOM":
            published, ours = float(row["tokens_per_second_per_gpu"]), predicted[number] / int(row["gpus"])
            rows.append(["8,192", row["system"] + ", tokens/s a GPU", f"{published:.0f}", f"{ours:.0f}", error(ours, published), *unseen[number]])
    return rows


def yuan_mfu(program, published):
    """The best of a search; no row of 32,768 tokens is fitted on."""
    usual = YUAN | {"--seq-len": 32768, "--search.schedules": '["interleaved"]'}
    ways = {"baseline": {"--search.policies": '["full"]', "--memory.offload": 0}, "ours": {"--search.policies": '["none","balanced"]'}}
    found = {name: plan(program, usual | flags) for name, flags in ways.items()}
    ours = {name: 100 * closed_mfu(best) for name, best in found.items()} | {"ratio": closed_mfu(found["ours"]) / closed_mfu(found["baseline"])}
    said = {name: float(published["Yuan", name]) for name in found}
    said["ratio"] = said["ours"] / said["baseline"]
    rows = [["32,768", f"{name}, MFU %: {name_of(found[name])}", f"{said[name]:.1f}", f"{ours[name]:.1f}", error(ours[name], said[name]), "", ""]
            for name in found]
    return rows + [["32,768", "ours / baseline", f"{said['ratio']:.2f}", f"{ours['ratio']:.2f}", error(ours["ratio"], said["ratio"]), "", ""]]


def yuan_speed(program, published):
    table("Yuan et al. (ATC'24): 175B on 256 H800", ["tokens", "system", "published", "plan", "error", "row unseen", "configuration unseen"],
          yuan_throughput(program) + yuan_mfu(program, published))


def yuan_offload(program):
    policies = {"no": "none", "ours": "balanced"}
    rows = []
    for _, row in published_rows():
        if row["figure"] != "fig9":
            continue
        p, layers = int(row["pp"]), int(row["layers_per_chunk"])
        flags = YUAN | {"--gpus": row["gpus"], "--seq-len": 4096, "--batch": row["global_batch"]}
        flags |= layout(tp=row["tp"], cp=row["cp"], pp=p, chunks=96 // (p * layers), schedule="interleaved", policy=policies[row["ckpt"]])
        alphas = [explain(program, flags | {"--memory.limit": limit})["offload_ratio"] for limit in ("64 GiB", "75 GB")]
        peak = explain(program, flags | {"--memory.offload": row["offload_ratio"]})["peak_bytes"]
        rows.append([row["gpus"], f"t{row['tp']} c{row['cp']} p{p} d{row['dp']}", policies[row["ckpt"]], row["offload_ratio"],
                     *(f"{alpha:.2f}" for alpha in alphas), f"{peak / 1e9:.1f}"])
    table("Yuan et al.: least α against GPUs, 175B, 4,096 tokens",
          ["GPUs", "layout", "policy", "published", "plan, 64 GiB", "plan, 75 GB", "GB at the published α"], rows)
    one = YUAN | {"--seq-len": 4096, "--batch": 288} | layout(tp=4, pp=12, chunks=8, schedule="interleaved", policy="balanced")
    alphas = {gpus: explain(program, one | {"--gpus": gpus, "--memory.limit": "64 GiB"})["offload_ratio"] for gpus in (48, 96, 144)}
    print("t4 p12 v8 balanced in 64 GiB: " + ", ".join(f"{gpus} GPUs α {alpha:.2f}" for gpus, alpha in alphas.items()) + "\n")


# --- SlimPipe ---------------------------------------------------------------------------------------------------------

SLIM = {"chunks": 5, "pp": 16, "tp": 4, "policy": "balanced+fc1", "exchange": "paired", "vocabulary_parallel": True}
OTHER = {"schedule": "interleaved", "chunks": 20, "pp": 4, "policy": "full"}
OTHER_MESHES = {128: (8, 4), 256: (8, 4), 512: (4, 16)}  # tensor and context parallel, the artifact's


def at_512k(program, machine, gpus):
    """Interleaved, slimpipe, and slimpipe without exchange."""
    flags = SLIMPIPE | {"--seq-len": 524288, "--gpus": gpus, "--hardware": hardware(machine), "--memory.offload": 0}
    t, c = OTHER_MESHES[gpus]
    ways = [layout(**OTHER, tp=t, cp=c), layout(**SLIM, cp=2, slices=32), layout(**SLIM | {"exchange": "off"}, cp=2, slices=32)]
    return [explain(program, flags | way) for way in ways]


def at_2048k(program, machine):
    flags = SLIMPIPE | {"--seq-len": 2097152, "--gpus": 256, "--hardware": hardware(machine), "--memory.offload": 0.75}
    return explain(program, flags | layout(**SLIM, cp=4, slices=64))


def slimpipe_512k(program, published):
    rows = []
    for machine, gpus in (("h800", 256), ("h800-cudnn", 128), ("h800-cudnn", 256), ("h800-cudnn", 512), (FASTER, 256)):
        found = at_512k(program, machine, gpus)
        closed, simulated = [closed_mfu(best) for best in found], [best["mfu"] for best in found]
        rows.append([machine, gpus, *map(percent, closed[:2]), f"{closed[1] / closed[0]:.2f}", *map(percent, simulated),
                     f"{simulated[1] / simulated[0]:.2f}"])
    table(f"SlimPipe (SC'25): Llama 70B, 512K tokens, MFU; published: up to {published['SlimPipe', '512K']} times the best other system's",
          ["hardware", "GPUs", "interleaved", "slimpipe", "ratio", "simulated: interleaved", "slimpipe", "without exchange", "ratio"], rows)
    ulysses = SLIMPIPE | layout(cp=8, schedule="1f1b", policy="full") | {"--gpus": 128, "--hardware": "h800", "--memory.offload": 0}
    best = explain(program, ulysses | {"--seq-len": 262144, "--batch": 16})
    refusal = ask(program, ulysses | {"--seq-len": 524288}, "--explain").stderr.strip().removeprefix("penstock: ")
    print(f"c8 d16 full on 128 GPUs: 512K: {refusal}; 256K, without ZeRO-3: {best['peak_bytes'] / 1e9:.0f} GB a device\n")


def slimpipe_2048k(program, published):
    rows = []
    for machine in ("h800", "h800-cudnn", FASTER):
        best = at_2048k(program, machine)
        rows.append([machine, f"{best['closed_form_s']:.0f}", percent(closed_mfu(best)), f"{best['step_s']:.0f}", percent(best["mfu"]),
                     f"{best['peak_bytes'] / 1e9:.1f}", f"{best['memory_bytes']['kv_gradients'] / 1e9:.1f}"])
    table(f"SlimPipe: Llama 70B, 2048K tokens, 256 GPUs, t4 c4 p16 n64 v5 balanced+fc1 α 0.75 (published: over {published['SlimPipe', '2048K']} %)",
          ["hardware", "step s", "MFU", "step s, simulated", "MFU, simulated", "GB a device", "of them K,V gradients"], rows)


def slimpipe_terms(program):
    runs = {}
    for machine in ("h800", "h800-cudnn"):
        runs[f"interleaved 512K, {machine}"], runs[f"slimpipe 512K, {machine}"] = at_512k(program, machine, 256)[:2]
        runs[f"slimpipe 2048K, {machine}"] = at_2048k(program, machine)
    share = lambda best, term: best["terms_s"][term] / best["closed_form_s"]
    terms = [term for term in next(iter(runs.values()))["terms_s"] if any(share(best, term) >= 0.04 for best in runs.values())]
    rows = [[term, *(percent(share(best, term)) for best in runs.values())] for term in terms]
    table("SlimPipe: where the step goes, 256 GPUs, closed form, terms of 4 % or more", ["term", *runs], rows)


def longest(program, flags):
    """K tokens that fit, by bisection, and the candidate there."""
    fits, too_long, found = 0, 4096, None
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        best = explain(program, flags | {"--workload.seq_len": 1024 * middle}, FOLDER / "llama-7b.toml")
        fits, too_long, found = (middle, too_long, best) if best["fits"] else (fits, middle, found)
    return fits, found


def slimpipe_longest(program, published):
    (FOLDER / "llama-7b.toml").write_text("[model]\nlayers = 32\nhidden = 4096\nffn = 11008\nheads = 32\nvocab = 128256\n")
    usual = {"--cluster.hardware": "h800", "--cluster.gpus": 64, "--memory.offload": 0} | layout(tp=8, pp=8, policy="none")
    ways = {"slimpipe": layout(slices=64, chunks=4, exchange="paired", vocabulary_parallel=True) | {"--workload.global_batch": 2},
            "1f1b": layout(schedule="1f1b") | {"--workload.global_batch": 16},
            "interleaved": layout(schedule="interleaved", chunks=4) | {"--workload.global_batch": 16}}
    rows = []
    for name, flags in ways.items():
        said = int(published["SlimPipe", name])
        fits, best = longest(program, usual | flags)
        at_said = explain(program, usual | flags | {"--workload.seq_len": 1024 * said}, FOLDER / "llama-7b.toml")
        rows.append([name, said, fits, f"{fits / said:.2f}", f"{at_said['peak_bytes'] / 1e9:.1f}",
                     f"{best['memory_bytes']['activations'] / 1e9:.1f}", f"{best['memory_bytes']['kv_gradients'] / 1e9:.1f}"])
    table("SlimPipe: longest context of a 7B on 64 GPUs of 80 GB without recomputation, t8 p8, K tokens",
          ["schedule", "published", "plan", "plan / published", "GB at the published length", "activations GB at plan's", "K,V gradients GB"],
          rows)


# --- schedules in unit times ------------------------------------------------------------------------------------------

def period(result):
    """Seconds between steps where they follow each other without a barrier: the longest span of a device."""
    return result["makespan_s"] - min(device["idle_by_cause_s"]["ramp"] for device in result["devices"])


def in_flight(result):
    return max(device["peak_in_flight"] for device in result["devices"])


def against_1f1b(program, name, parts, p, m, *flags, transfer=0):
    """Throughput with and without a barrier, and records, of 1F1B's, whose F is worth as many as its micro-batches have
    `parts`: chunks or slices."""
    ours = simulate(program, name, p, m, "--transfer", transfer, *flags)
    plain = simulate(program, "1f1b", p, m, "--transfer", transfer, "--forward", parts, "--backward", 2 * parts)
    return [f"{plain['makespan_s'] / ours['makespan_s']:.2f}", f"{plain['makespan_s'] / period(ours):.2f}",
            f"{in_flight(ours) / parts / in_flight(plain):.2f}"]


def schedules(program, published):
    said = {claim: text for (_, claim), text in published.items()}
    rows = []
    for name, parts, p, claim in (("zb-v", 2, 8, f"{said['similar memory']} x at similar memory"), ("zb-h2", 1, 8, f"{said['relaxed memory']} x"),
                                  ("v-half", 2, 32, f"{said['half']} of the memory"), ("v-min", 2, 32, f"{said['min']} of the memory")):
        rows.append([name, f"p{p} m{3 * p}", claim, *against_1f1b(program, name, parts, p, 3 * p), ""])
    for m, transfer in ((8, 0), (16, 0.5)):
        other, ours = (simulate(program, name, 8, m, "-v", 8, "--transfer", transfer)["makespan_s"] for name in ("interleaved", "breadth-first"))
        rows.append(["breadth-first", f"p8 m{m} v8, transfers {transfer} F", f"{said['52B']} x Megatron-LM's",
                     *against_1f1b(program, "breadth-first", 8, 8, m, "-v", 8, transfer=transfer), f"{other / ours:.2f}"])
    rows.append(["seq1f1b", "p8 m32 n4", f"{said['throughput']} x at {said['memory']} of the memory",
                 *against_1f1b(program, "seq1f1b", 4, 8, 32, "-n", 4), ""])
    table("Schedules: of 1F1B's, in unit times (F = I = W; published: up to)",
          ["schedule", "size", "published", "throughput", "without a barrier", "records", "over interleaved"], rows)


def seq1f1b(program, published):
    """A shape of 29 B parameters; the paper's own is not in its abstract."""
    (FOLDER / "29b.toml").write_text("[model]\nlayers = 64\nhidden = 6144\nffn = 16384\nheads = 64\nvocab = 32000\n")
    usual = {"--cluster.hardware": "a100", "--cluster.gpus": 64, "--workload.global_batch": 32, "--memory.offload": 0}
    rows = []
    for tokens in (32768, 65536):
        ways = [layout(tp=8, pp=8, schedule="1f1b"), layout(tp=8, pp=8, schedule="seq1f1b", slices=4)]
        plain, ours = (explain(program, usual | flags | {"--workload.seq_len": tokens}, FOLDER / "29b.toml") for flags in ways)
        rows.append([tokens, f"{plain['peak_bytes'] / 1e9:.1f}", f"{ours['peak_bytes'] / 1e9:.1f}", f"{ours['peak_bytes'] / plain['peak_bytes']:.2f}",
                     f"{plain['closed_form_s'] / ours['closed_form_s']:.2f}", f"{plain['step_s'] / ours['step_s']:.2f}",
                     percent(ours["terms_s"]["unequal slices"] / ours["closed_form_s"])])
    table(f"Seq1F1B: 29B on 64 A100, t8 p8 n4 m32, nothing recomputed; published: {published['Seq1F1B', '30B']} tokens fit",
          ["tokens", "1F1B GB", "seq1f1b GB", "ratio", "throughput", "throughput, simulated", "unequal slices"], rows)


def main():
    program = programs.asked(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    published = claims()
    yuan_speed(program, published)
    yuan_offload(program)
    slimpipe_512k(program, published)
    slimpipe_2048k(program, published)
    slimpipe_terms(program)
    slimpipe_longest(program, published)
    schedules(program, published)
    seq1f1b(program, published)


if __name__ == "__main__":
    main()
