"""Redacts 209 harmless strings, as values and as raw bytes, and the sources of the installed packages."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import orjson

from tests.support.harmless import values
from tests.torture.campaign import start

MOST_REPLACED = 3  # of the 209: two ids have the shape of a key


def main(argv: list[str]) -> int:
    campaign = start("false_positives", argv, 1000)
    from wiretape.tape.redaction import Redactor

    replaced = []
    for kind, value in values():
        campaign.tried["strings"] += 1
        raw = orjson.dumps(value)
        if Redactor().value(value) != value or Redactor().data(raw) != raw:
            replaced.append(f"{kind}: {raw[:120]!r}")
    print("\n".join(replaced))
    if len(replaced) > MOST_REPLACED:
        campaign.fail(f"{len(replaced)} of {campaign.tried['strings']} harmless strings are replaced")
    sources = sorted(Path(sysconfig.get_paths()["purelib"]).rglob("*.py"))
    campaign.source.shuffle(sources)
    changed = 0
    for path in sources[: campaign.count]:
        text = path.read_text(errors="replace")[:200_000]
        campaign.tried["source files"] += 1
        campaign.tried["kilobytes"] += len(text) // 1000
        redactor = Redactor()
        if redactor.text(text) != text:
            changed += 1
            print(f"{path.name}: {redactor.counts}")
    if changed > campaign.tried["kilobytes"] / 1000:  # the replaced values are mostly example keys
        campaign.fail(f"{changed} source files are changed")
    return campaign.finish()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
