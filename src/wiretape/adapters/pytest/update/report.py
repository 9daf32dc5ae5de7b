"""What `--wiretape-mode=update` has done to each tape, and the end of tapes that tests share.

What one test does not ask for another may: from such a tape calls are dropped only when every test that uses it has
passed. Their reports say what each of them left, also from workers of pytest-xdist.

Loaded in every pytest run of whoever has wiretape installed: nothing heavy may be imported here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from wiretape.adapters.pytest.tape_paths import shown
from wiretape.errors import WiretapeError
from wiretape.model.wording import plural

if TYPE_CHECKING:
    from wiretape.adapters.pytest.tape_users import Users
    from wiretape.adapters.pytest.update.new_tape import UpdatedTape
    from wiretape.adapters.settings import Settings
    from wiretape.matching.report import ReplayReport
    from wiretape.matching.values import Miss

_MOST_WHYS = 6
_MOST_NAMED = 12


class TapeUpdate(TypedDict):
    """What one test that has passed did to its tape. `fresh`: exchanges that were asked live; `why`: what differed.

    `users`: the ids of the tests that use the tape, where they are several; `partial`: why there may be more of them.
    `left`: the exchanges that the test did not ask for, by digest, where others may. `kept` and `dropped` are told of a
    tape that the test has alone.
    """

    tape: str
    users: list[str]
    partial: str
    fresh: int
    kept: int
    dropped: list[str]
    why: list[str]
    left: dict[str, int]


def updated(tape: Path, users: Users | None, renewal: UpdatedTape, misses: Sequence[Miss]) -> TapeUpdate:
    """Of a test that has passed, before anything is written. `users`: None: it has the tape alone."""
    from wiretape.adapters.pytest.headline import headline
    from wiretape.adapters.pytest.update.new_tape import digest

    made = recorded(tape, users)
    made["fresh"], made["kept"] = len(renewal.fresh), len(renewal.kept)
    made["why"] = [f"{miss.what}: {headline(miss, tape.name) or miss.reason}" for miss in misses]
    made["left"] = dict(Counter(map(digest, renewal.left))) if users is not None else {}
    return made


def recorded(tape: Path, users: Users | None) -> TapeUpdate:
    """Of a test for which there was no tape: it has left nothing."""
    tests, partial = (list(users.tests), users.partial) if users is not None else ([], "")
    return TapeUpdate(tape=str(tape), users=tests, partial=partial, fresh=0, kept=0, dropped=[], why=[], left={})


def named(report: ReplayReport, misses: Sequence[Miss]) -> list[str]:
    """What was dropped of a tape that its test has alone. What its recorder had lost has been asked again."""
    again = {miss.nearest.exchange for miss in misses if miss.reason == "not playable" and miss.nearest is not None}
    names = [str(one) for one in report.left_over if one.exchange not in again]
    return names + ([plural(report.sockets, "WebSocket")] if report.sockets else [])


def settled(tests: Mapping[str, TapeUpdate], settings: Settings) -> list[str]:
    """Drops what no test of a shared tape asked for, and says what has become of each tape."""
    by_tape: dict[str, dict[str, TapeUpdate]] = {}
    for test, one in tests.items():
        by_tape.setdefault(one["tape"], {})[test] = one
    lines: list[str] = []
    untouched = 0
    for tape, users in by_tape.items():
        told = list(_settled(Path(tape), users, settings))
        lines += told
        untouched += not told
    if untouched:
        count = f"{untouched} tapes still answer" if untouched > 1 else "1 tape still answers"
        lines.append(f"{count} every call: nothing was asked live for {'them' if untouched > 1 else 'it'}")
    return lines


def _settled(tape: Path, tests: Mapping[str, TapeUpdate], settings: Settings) -> Iterator[str]:
    """Nothing where the tape was not touched."""
    fresh = sum(one["fresh"] for one in tests.values())
    kept = max(one["kept"] for one in tests.values())
    dropped = [name for one in tests.values() for name in one["dropped"]]
    gone, stays = len(dropped), ""
    stale = _left_by_all(tests)
    if stale:
        stays = _why_not(tests)
        try:
            gone = 0 if stays else _drop(tape, stale, settings)
        except Exception as error:  # the tape is as the tests have left it
            stays = str(error)
    if not (fresh or gone or stays):
        return
    if _is_shared(tests):
        with suppress(WiretapeError, OSError):  # it is gone by now: what one test has kept must do
            kept = _on(tape) - fresh
    if fresh or gone:
        yield f"updated {shown(tape)}: {plural(fresh, 'exchange')} asked live, {kept} kept, {gone} dropped"
    whys = Counter(why for one in tests.values() for why in one["why"])
    for why, times in list(whys.items())[:_MOST_WHYS]:
        yield f"  {why}{f' ({times} times)' if times > 1 else ''}"
    if dropped:
        more = f" and {len(dropped) - _MOST_NAMED} more" if len(dropped) > _MOST_NAMED else ""
        yield f"  not asked for any more: {', '.join(dropped[:_MOST_NAMED])}{more}"
    if stays:
        number = sum(stale.values())
        what = f"{plural(number, 'exchange')} that these tests did not ask for {'stays' if number == 1 else 'stay'}"
        yield f"{shown(tape)}: {what}"
        yield f"  {stays}"


def _left_by_all(tests: Mapping[str, TapeUpdate]) -> Counter[str]:
    """Exchanges that none of these tests asked for. What one of them has recorded, it has not left."""
    lefts = [Counter(one["left"]) for one in tests.values()]
    common = lefts[0]
    for left in lefts[1:]:
        common &= left
    return common


def _why_not(tests: Mapping[str, TapeUpdate]) -> str:
    """Why another test may ask for what these have left; empty: there is no other."""
    missing = sorted({user for one in tests.values() for user in one["users"]} - set(tests))
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        return f"others that use the tape have not passed in this run: {', '.join(missing[:3])}{more}"
    partial = next((one["partial"] for one in tests.values() if one["partial"]), "")
    return f"{partial}, and others may use this tape: a run of the whole suite drops them" if partial else ""


def _is_shared(tests: Mapping[str, TapeUpdate]) -> bool:
    return any(one["users"] for one in tests.values())


def _drop(tape: Path, stale: Counter[str], settings: Settings) -> int:
    from wiretape.adapters.pytest.update.new_tape import without

    return without(tape, stale, settings)


def _on(tape: Path) -> int:
    from wiretape.tape.reading.reader import read_tape

    return len(read_tape(tape).exchanges)
