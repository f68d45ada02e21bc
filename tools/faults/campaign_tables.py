"""The campaign's tables, from its log into a page, between the markers that stand there.

    tools/faults/chaos.py tables LOG... [--page docs/reliability.md]
"""

import argparse
import collections
import json
import re
import time
from pathlib import Path

import campaign_plan as plans

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
PLACES = ["threads", "shm", "algorithm", "pretended", "namespaces", "mpi", "gpus", "newcomers",
          "newcomers on hosts"]
# The kind of a line's complaint, by words in it; the first that fits.
GRAVE = {"hang": "hangs", "wrong result": "WrongResult", "orphan": "orphan",
         "left behind": "left in"}


def read(logs):
    for log in logs:
        with open(log) as file:
            for line in file:
                if line.endswith("\n"):  # the last may be half written
                    yield json.loads(line)


def in_time(seconds):
    if seconds < 0.000_95:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 0.95:
        return f"{seconds * 1e3:.2g} ms" if seconds < 0.00995 else f"{seconds * 1e3:.0f} ms"
    return f"{seconds:.1f} s"


def table(head, rows):
    return "\n".join(f"| {' | '.join(map(str, row))} |"
                     for row in [head, ["---"] + ["--:"] * (len(head) - 1), *rows])


def summary(lines):
    faults = [line for line in lines if line["harm"] != "none"]
    wrong = [text for line in lines for text in line["wrong"]]
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(line["at"])) for line in lines})
    heads = list(dict.fromkeys(line["head"] for line in lines))
    counted = ", ".join(f"{sum(word in text for text in wrong)} {what}"
                        for what, word in GRAVE.items())
    return (f"{len(faults)} faults in {len({(x['seed'], x['job']) for x in lines})} jobs; "
            f"of the faults {sum(bool(x['wrong']) for x in lines)} had something wrong ({counted}). "
            f"{sum(bool(x.get('known')) for x in lines)} more ended by an assertion of UCX's own. "
            f"{' to '.join(dict.fromkeys([days[0], days[-1]]))}, at {', '.join(heads)}.")


def injected(lines):
    count = collections.Counter((line["harm"], line["place"]) for line in lines)
    places = [place for place in PLACES if any(key[1] == place for key in count)]
    rows = [[harm, *(count[harm, place] or "" for place in places),
             sum(count[harm, place] for place in places)]
            for harm in plans.HARMS if harm != "none" and any(key[0] == harm for key in count)]
    totals = [sum(row[i] or 0 for row in rows) for i in range(1, len(places) + 2)]
    return table(["harm", *places, "all"], [*rows, ["all", *totals]])


def came(lines):
    rows = []
    for harm in plans.HARMS:
        of_it = [line for line in lines if line["harm"] == harm]
        if not of_it or harm == "none":
            continue
        took = sorted(t for line in of_it for t in line["took"])
        soon = ["", "", ""]
        if took:
            soon = [in_time(took[min(len(took) - 1, int(len(took) * part))])
                    for part in (0.5, 0.99, 1.0)]
        well = [line for line in of_it if not line["wrong"] and not line.get("known")]
        right = sum(line["came"] == "right" for line in well)
        must = plans.HARMS[harm].kind.replace("right", "right results")
        must += " or Aborted" if plans.HARMS[harm].closes else ""
        must += ", or right results" if harm in plans.CUTS else ""
        must += " or RendezvousError" if harm == "killed in init" else ""
        rows.append([harm, must, right or "",
                     len(well) - right or "", len(of_it) - len(well) or 0, *soon])
    return table(["harm", "must end in", "right result", "right error", "otherwise", "median",
                  "99 %", "most"], rows)


def otherwise(lines):
    found = collections.defaultdict(list)
    for line in lines:
        if line["wrong"]:
            text = re.sub(r"[\d.]+(, \d+)*", "N", line["wrong"][0].split("\n")[0])
            found[line["harm"], line["place"], " ".join(text.split()[:16])].append(line)
    if not found:
        return "Nothing."
    rows = [[harm, place, len(of_it), f"{of_it[0]['seed']}, {of_it[0]['job']}",
             text.replace("|", "/")]
            for (harm, place, text), of_it in sorted(found.items(), key=lambda f: -len(f[1]))]
    return table(["harm", "place", "times", "seed, job", "what came"], rows)


def main(arguments):
    parser = argparse.ArgumentParser(prog="chaos.py tables", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--page", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    lines = list(read(chosen.logs))
    if not lines:
        parser.error("the logs are empty")
    page = chosen.page.read_text()
    for name, made in (("summary", summary), ("injected", injected), ("came", came),
                       ("otherwise", otherwise)):
        page, found = re.subn(rf"(<!-- campaign: {name} -->\n).*?(<!-- end -->)",
                              lambda match, text=made(lines): f"{match[1]}{text}\n{match[2]}", page,
                              flags=re.S)
        if not found:
            parser.error(f"{chosen.page} has no place for the table {name}")
    chosen.page.write_text(page)
    print(summary(lines))
    return 0
